// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/apiserver"
)

func serviceKinds() []*apiserver.Resource {
	type service = *corev1.Service
	return []*apiserver.Resource{
		kind[corev1.Service, service]{
			version: "v1", plural: "services", short: []string{"svc"}, categories: []string{"all"},
			status: true, unconditional: true, creates: true,
			deletion: apiserver.DeletionRules{ReturnsObject: true},
			defaults: defaultService,
			validate: validateService,
			columns:  columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"),
			row: func(s service) []any {
				ip := none
				if len(s.Spec.ClusterIPs) > 0 {
					ip = s.Spec.ClusterIPs[0]
				}
				return []any{
					s.Name, string(s.Spec.Type), ip, externalIP(s), orNone(portsText(s.Spec.Ports)), age(s), labelText(s.Spec.Selector),
				}
			},
			selectable: []selectable[service]{
				leaf("spec.clusterIP", func(s service) string { return s.Spec.ClusterIP }),
				leaf("spec.type", func(s service) string { return string(s.Spec.Type) }),
			},
		}.resource(),
		kind[corev1.Endpoints, *corev1.Endpoints]{
			version: "v1", plural: "endpoints", short: []string{"ep"}, unconditional: true, creates: true,
			singular: "endpoints",
			defaults: func(e *corev1.Endpoints) {
				for i := range e.Subsets {
					for j := range e.Subsets[i].Ports {
						orDefault(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
					}
				}
			},
			warnings: func(_, _ *corev1.Endpoints) []string {
				return []string{"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}
			},
			columns: columns("Name", "Endpoints", "Age"),
			row:     func(e *corev1.Endpoints) []any { return []any{e.Name, endpointsText(e), age(e)} },
		}.resource(),
		kind[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]{
			group: "discovery.k8s.io", version: "v1", plural: "endpointslices", generations: true, unconditional: true,
			defaults: func(e *discoveryv1.EndpointSlice) {
				for i := range e.Ports {
					fill(&e.Ports[i].Name, "")
					fill(&e.Ports[i].Protocol, corev1.ProtocolTCP)
				}
			},
			validate: validateEndpointSlice,
			columns:  columns("Name", "AddressType", "Ports", "Endpoints", "Age"),
			row:      sliceRow,
		}.resource(),
	}
}

func defaultService(s *corev1.Service) {
	spec := &s.Spec
	orDefault(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP &&
		(spec.SessionAffinityConfig == nil || spec.SessionAffinityConfig.ClientIP == nil || spec.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil) {
		timeout := corev1.DefaultClientIPServiceAffinitySeconds
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
	}
	orDefault(&spec.Type, corev1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		orDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	external := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer ||
		spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) > 0
	if external {
		orDefault(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		fill(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		fill(&spec.AllocateLoadBalancerNodePorts, true)
	}
	ingress := s.Status.LoadBalancer.Ingress
	for i := range ingress {
		if ingress[i].IP != "" {
			fill(&ingress[i].IPMode, corev1.LoadBalancerIPModeVIP)
		}
	}
}

// externalIP is where a Service can be reached from outside.
func externalIP(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return orNone(strings.Join(s.Spec.ExternalIPs, ","))
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

// maxShown is how many of many addresses a cell shows.
const maxShown = 3

// some shows the first few of a list.
func some(list []string) string {
	if len(list) == 0 {
		return none
	}
	if len(list) > maxShown {
		return strings.Join(list[:maxShown], ",") + fmt.Sprintf(" + %d more...", len(list)-maxShown)
	}
	return strings.Join(list, ",")
}

func endpointsText(e *corev1.Endpoints) string {
	if len(e.Subsets) == 0 {
		return none
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
	return some(list)
}

func sliceRow(e *discoveryv1.EndpointSlice) []any {
	var ports, addresses []string
	for _, p := range e.Ports {
		switch {
		case p.Port != nil:
			ports = append(ports, strconv.Itoa(int(*p.Port)))
		case value(p.Name) != "":
			ports = append(ports, *p.Name)
		default:
			ports = append(ports, "*")
		}
	}
	portText := "<unset>"
	if len(ports) > 0 {
		portText = some(ports)
	}
	for _, endpoint := range e.Endpoints {
		addresses = append(addresses, endpoint.Addresses...)
	}
	addressText := "<unset>"
	if len(addresses) > 0 {
		addressText = some(addresses)
	}
	return []any{e.Name, string(e.AddressType), portText, addressText, age(e)}
}

// createdRow is the table of kinds that show when they were created.
func createdRow(obj metav1.Object) []any {
	return []any{obj.GetName(), obj.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z")}
}
