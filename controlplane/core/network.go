// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/steer-dev/steer/apiserver"
)

func networkKinds() []*apiserver.Resource {
	return []*apiserver.Resource{
		kind[networkingv1.Ingress, *networkingv1.Ingress]{
			group: "networking.k8s.io", version: "v1", plural: "ingresses", short: []string{"ing"},
			status: true, generations: true, unconditional: true,
			validate: validateIngress,
			columns:  columns("Name", "Class", "Hosts", "Address", "Ports", "Age"),
			row:      ingressRow,
		}.resource(),
		kind[networkingv1.IngressClass, *networkingv1.IngressClass]{
			group: "networking.k8s.io", version: "v1", plural: "ingressclasses", cluster: true, generations: true, unconditional: true,
			defaults: func(c *networkingv1.IngressClass) {
				if c.Spec.Parameters != nil {
					fill(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
				}
			},
			columns: columns("Name", "Controller", "Parameters", "Age"),
			row: func(c *networkingv1.IngressClass) []any {
				parameters := none
				if p := c.Spec.Parameters; p != nil {
					parameters = p.Kind + "/" + p.Name
					if group := value(p.APIGroup); group != "" {
						parameters = p.Kind + "." + group + "/" + p.Name
					}
				}
				return []any{c.Name, c.Spec.Controller, parameters, age(c)}
			},
		}.resource(),
		kind[networkingv1.NetworkPolicy, *networkingv1.NetworkPolicy]{
			group: "networking.k8s.io", version: "v1", plural: "networkpolicies", short: []string{"netpol"},
			generations: true, unconditional: true,
			defaults: defaultNetworkPolicy,
			columns:  columns("Name", "Pod-Selector", "Age"),
			row: func(p *networkingv1.NetworkPolicy) []any {
				return []any{p.Name, selectorText(&p.Spec.PodSelector), age(p)}
			},
		}.resource(),
	}
}

func ingressRow(i *networkingv1.Ingress) []any {
	class := none
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
		hostText = some(hosts)
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
	return []any{i.Name, class, hostText, strings.Join(addresses, ","), ports, age(i)}
}

func defaultNetworkPolicy(p *networkingv1.NetworkPolicy) {
	ports := func(list []networkingv1.NetworkPolicyPort) {
		for i := range list {
			fill(&list[i].Protocol, corev1.ProtocolTCP)
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
