// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package service serves Services, Endpoints, EndpointSlices, IPAddresses and
// ServiceCIDRs, allocates the cluster IPs and node ports of Services, and runs the
// controller of ServiceCIDRs.
package service

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// Resources returns the kinds of this package.
func Resources() []*resource.Resource {
	return slices.Concat(serviceKinds(), addressKinds())
}

func serviceKinds() []*resource.Resource {
	type service = *corev1.Service
	return []*resource.Resource{
		kind.Definition[corev1.Service, service]{
			Version: "v1", Plural: "services", Short: []string{"svc"}, Categories: []string{"all"},
			Status: true, Unconditional: true, Creates: true,
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Defaults: defaultService, Prepare: prepareService,
			NameRule: apivalidation.NameIsDNSLabel,
			Warnings: serviceWarnings,
			Validate: validateService, ValidateStatus: validateServiceStatus,
			Columns: kind.Columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"),
			Row: func(s service) []any {
				ip := kind.None
				if len(s.Spec.ClusterIPs) > 0 {
					ip = s.Spec.ClusterIPs[0]
				}
				return []any{
					s.Name, string(s.Spec.Type), ip, externalIP(s), kind.OrNone(portsText(s.Spec.Ports)), kind.Age(s), kind.LabelText(s.Spec.Selector),
				}
			},
			Selectable: []kind.Selectable[service]{
				kind.Leaf("spec.clusterIP", func(s service) string { return s.Spec.ClusterIP }),
				kind.Leaf("spec.type", func(s service) string { return string(s.Spec.Type) }),
			},
		}.Resource(),
		kind.Definition[corev1.Endpoints, *corev1.Endpoints]{
			Version: "v1", Plural: "endpoints", Short: []string{"ep"}, Unconditional: true, Creates: true,
			Singular: "endpoints",
			Validate: validateEndpoints,
			Defaults: func(e *corev1.Endpoints) {
				for i := range e.Subsets {
					for j := range e.Subsets[i].Ports {
						kind.OrDefault(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
					}
				}
			},
			Deprecation: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
			Columns:     kind.Columns("Name", "Endpoints", "Age"),
			Row:         func(e *corev1.Endpoints) []any { return []any{e.Name, endpointsText(e), kind.Age(e)} },
		}.Resource(),
		kind.Definition[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]{
			Group: "discovery.k8s.io", Version: "v1", Plural: "endpointslices", Generations: true, LabelsCount: true, Unconditional: true,
			Defaults: func(e *discoveryv1.EndpointSlice) {
				for i := range e.Ports {
					kind.Fill(&e.Ports[i].Name, "")
					kind.Fill(&e.Ports[i].Protocol, corev1.ProtocolTCP)
				}
			},
			Prepare:  func(_ context.Context, e, old *discoveryv1.EndpointSlice) { dropTopology(e, old) },
			Validate: validateEndpointSlice, Warnings: sliceWarnings,
			Columns: kind.Columns("Name", "AddressType", "Ports", "Endpoints", "Age"),
			Row:     sliceRow,
		}.Resource(),
	}
}

// dropTopology clears what v1 has for reading alone, unless the endpoints stay as they
// are. A node that was known by its topology before is kept by its name.
func dropTopology(e, old *discoveryv1.EndpointSlice) {
	known := map[string]bool{}
	if old != nil {
		if equality.Semantic.DeepEqual(e.Endpoints, old.Endpoints) {
			return
		}
		for i := range old.Endpoints {
			known[old.Endpoints[i].DeprecatedTopology[corev1.LabelHostname]] = true
		}
	}
	for i := range e.Endpoints {
		p := &e.Endpoints[i]
		node := p.DeprecatedTopology[corev1.LabelHostname]
		if p.NodeName == nil && node != "" && known[node] && len(validation.IsDNS1123Subdomain(node)) == 0 {
			p.NodeName = &node
		}
		p.DeprecatedTopology = nil
	}
}

func defaultService(s *corev1.Service) {
	spec := &s.Spec
	kind.OrDefault(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP &&
		(spec.SessionAffinityConfig == nil || spec.SessionAffinityConfig.ClientIP == nil || spec.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil) {
		timeout := corev1.DefaultClientIPServiceAffinitySeconds
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
	}
	kind.OrDefault(&spec.Type, corev1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		kind.OrDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	external := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer ||
		spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) > 0
	if external {
		kind.OrDefault(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		kind.Fill(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		kind.Fill(&spec.AllocateLoadBalancerNodePorts, true)
	}
	ingress := s.Status.LoadBalancer.Ingress
	for i := range ingress {
		if ingress[i].IP != "" {
			kind.Fill(&ingress[i].IPMode, corev1.LoadBalancerIPModeVIP)
		}
	}
}

// externalIP is where a Service can be reached from outside.
func externalIP(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return kind.OrNone(strings.Join(s.Spec.ExternalIPs, ","))
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var addresses []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			if in.IP != "" {
				addresses = append(addresses, in.IP)
			} else if in.Hostname != "" {
				addresses = append(addresses, in.Hostname)
			}
		}
		addresses = append(addresses, s.Spec.ExternalIPs...)
		if len(addresses) == 0 {
			return "<pending>"
		}
		return strings.Join(addresses, ",")
	default:
		return "<unknown>"
	}
}

func portsText(ports []corev1.ServicePort) string {
	var out []string
	for _, p := range ports {
		text := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			text = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
		out = append(out, text)
	}
	return strings.Join(out, ",")
}

func endpointsText(e *corev1.Endpoints) string {
	if len(e.Subsets) == 0 {
		return kind.None
	}
	var list []string
	for _, s := range e.Subsets {
		if len(s.Ports) == 0 {
			for _, a := range s.Addresses {
				list = append(list, a.IP)
			}
			continue
		}
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				list = append(list, a.IP+":"+strconv.Itoa(int(p.Port)))
			}
		}
	}
	return kind.Some(list)
}

func sliceRow(e *discoveryv1.EndpointSlice) []any {
	var ports, addresses []string
	for _, p := range e.Ports {
		switch {
		case p.Port != nil:
			ports = append(ports, strconv.Itoa(int(*p.Port)))
		case kind.Value(p.Name) != "":
			ports = append(ports, *p.Name)
		default:
			ports = append(ports, "*")
		}
	}
	portText := "<unset>"
	if len(ports) > 0 {
		portText = kind.Some(ports)
	}
	for _, endpoint := range e.Endpoints {
		addresses = append(addresses, endpoint.Addresses...)
	}
	addressText := "<unset>"
	if len(addresses) > 0 {
		addressText = kind.Some(addresses)
	}
	return []any{e.Name, string(e.AddressType), portText, addressText, kind.Age(e)}
}
