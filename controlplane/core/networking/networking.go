// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package networking serves Ingresses, IngressClasses and NetworkPolicies.
package networking

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// Resources returns the kinds of this package.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		kind.Definition[networkingv1.Ingress, *networkingv1.Ingress]{
			Group: "networking.k8s.io", Version: "v1", Plural: "ingresses", Short: []string{"ing"},
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Status:   true, Generations: true, Unconditional: true,
			Validate: validateIngress, ValidateStatus: validateIngressStatus,
			Warnings: ingressWarnings,
			Columns:  kind.Columns("Name", "Class", "Hosts", "Address", "Ports", "Age"),
			Row:      ingressRow,
		}.Resource(),
		kind.Definition[networkingv1.IngressClass, *networkingv1.IngressClass]{
			Group: "networking.k8s.io", Version: "v1", Plural: "ingressclasses", Cluster: true, Generations: true, Unconditional: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Defaults: func(c *networkingv1.IngressClass) {
				if c.Spec.Parameters != nil {
					kind.Fill(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
				}
			},
			Validate: validateIngressClass,
			Columns:  kind.Columns("Name", "Controller", "Parameters", "Age"),
			Row: func(c *networkingv1.IngressClass) []any {
				parameters := kind.None
				if p := c.Spec.Parameters; p != nil {
					parameters = p.Kind + "/" + p.Name
					if group := kind.Value(p.APIGroup); group != "" {
						parameters = p.Kind + "." + group + "/" + p.Name
					}
				}
				name := c.Name
				if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
					name += " (default)"
				}
				return []any{name, c.Spec.Controller, parameters, kind.Age(c)}
			},
		}.Resource(),
		kind.Definition[networkingv1.NetworkPolicy, *networkingv1.NetworkPolicy]{
			Group: "networking.k8s.io", Version: "v1", Plural: "networkpolicies", Short: []string{"netpol"},
			Generations: true, Unconditional: true,
			Defaults: defaultNetworkPolicy,
			Validate: validateNetworkPolicy,
			Warnings: networkPolicyWarnings,
			Columns:  kind.Columns("Name", "Pod-Selector", "Age"),
			Row: func(p *networkingv1.NetworkPolicy) []any {
				return []any{p.Name, kind.SelectorText(&p.Spec.PodSelector), kind.Age(p)}
			},
		}.Resource(),
	}
}

func ingressRow(i *networkingv1.Ingress) []any {
	class := kind.None
	if i.Spec.IngressClassName != nil {
		class = *i.Spec.IngressClassName
	}
	var hosts, addresses []string
	for _, rule := range i.Spec.Rules {
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	hostText := "*"
	if len(hosts) > 0 {
		hostText = kind.Some(hosts)
	}
	for _, in := range i.Status.LoadBalancer.Ingress {
		if in.IP != "" {
			addresses = append(addresses, in.IP)
		} else if in.Hostname != "" {
			addresses = append(addresses, in.Hostname)
		}
	}
	ports := "80"
	if len(i.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	return []any{i.Name, class, hostText, strings.Join(addresses, ","), ports, kind.Age(i)}
}

func defaultNetworkPolicy(p *networkingv1.NetworkPolicy) {
	ports := func(list []networkingv1.NetworkPolicyPort) {
		for i := range list {
			kind.Fill(&list[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for _, rule := range p.Spec.Ingress {
		ports(rule.Ports)
	}
	for _, rule := range p.Spec.Egress {
		ports(rule.Ports)
	}
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}
