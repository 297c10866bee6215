// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateService(s, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	spec := f.Child("spec")
	if old != nil {
		checkServiceChange(&spec, s, old)
	}
	checkTopologyMode(&f, s.Annotations)
	checkServiceType(&spec, s)
	checkServicePorts(&spec, s)
	spec.Labels("selector", s.Spec.Selector)
	checkAffinity(&spec, &s.Spec)
	checkAddresses(&spec, &s.Spec)
	list := spec.Child("externalIPs")
	for i, ip := range s.Spec.ExternalIPs {
		at := list.Index(i)
		before := at.Len()
		if at.IP(valid.Self, ip); at.Len() == before {
			checkEndpointIP(&at, ip)
		}
	}
	valid.RequiredOf(&spec, "type", s.Spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)
	checkUniquePorts(&spec, s)
	checkBalancer(&f, s)
	checkTraffic(&spec, &s.Spec)
	return errs
}

func isHeadless(s *corev1.ServiceSpec) bool {
	return len(s.ClusterIPs) == 1 && s.ClusterIPs[0] == corev1.ClusterIPNone
}

func isBalancer(s *corev1.ServiceSpec) bool { return s.Type == corev1.ServiceTypeLoadBalancer }

func checkTopologyMode(f *valid.Field, annotations map[string]string) {
	hints, both := annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if mode, ok := annotations[corev1.AnnotationTopologyMode]; ok && both && mode != hints {
		metadata := f.Child("metadata")
		list := metadata.Child("annotations")
		at := list.Key(corev1.AnnotationTopologyMode)
		at.Invalid(valid.Self, mode, fmt.Sprintf("must match annotations[%s] when both are specified", corev1.DeprecatedAnnotationTopologyAwareHints))
	}
}

func checkServiceType(f *valid.Field, s *corev1.Service) {
	spec := &s.Spec
	if len(spec.Ports) == 0 && !isHeadless(spec) && spec.Type != corev1.ServiceTypeExternalName {
		f.Required("ports", "")
	}
	switch spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		if isHeadless(spec) {
			list := f.Child("clusterIPs")
			at := list.Index(0)
			at.Invalid(valid.Self, spec.ClusterIPs[0], fmt.Sprintf("may not be set to 'None' for %s services", spec.Type))
		}
	case corev1.ServiceTypeExternalName:
		const refused = "may not be set for ExternalName services"
		if len(spec.ClusterIPs) > 0 {
			f.Forbidden("clusterIPs", refused)
		}
		if len(spec.IPFamilies) > 0 {
			f.Forbidden("ipFamilies", refused)
		}
		if spec.IPFamilyPolicy != nil {
			f.Forbidden("ipFamilyPolicy", refused)
		}
		if name := strings.TrimSuffix(spec.ExternalName, "."); f.NonEmpty("externalName", name) {
			f.Subdomain("externalName", name)
		}
	}
}

func checkServicePorts(f *valid.Field, s *corev1.Service) {
	list, names := f.Child("ports"), sets.New[string]()
	for i := range s.Spec.Ports {
		p, at := &s.Spec.Ports[i], list.Index(i)
		if p.Name == "" {
			if len(s.Spec.Ports) > 1 {
				at.Required("name", "")
			}
		} else {
			at.DNSLabel("name", p.Name)
			if names.Has(p.Name) {
				at.Duplicate("name", p.Name)
			}
			names.Insert(p.Name)
		}
		at.Port("port", p.Port)
		valid.RequiredOf(&at, "protocol", p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
		at.PortOrName("targetPort", p.TargetPort)
		if p.AppProtocol != nil {
			at.Qualified("appProtocol", *p.AppProtocol)
		}
	}
}

// checkUniquePorts has the rules of ports among each other.
func checkUniquePorts(f *valid.Field, s *corev1.Service) {
	list := f.Child("ports")
	if s.Spec.Type == corev1.ServiceTypeClusterIP {
		for i, p := range s.Spec.Ports {
			if p.NodePort != 0 {
				at := list.Index(i)
				at.Forbidden("nodePort", "may not be used when `type` is 'ClusterIP'")
			}
		}
	}
	type key struct {
		protocol corev1.Protocol
		port     int32
	}
	seen := map[key]bool{}
	for i, p := range s.Spec.Ports {
		if p.NodePort == 0 {
			continue
		}
		if seen[key{p.Protocol, p.NodePort}] {
			at := list.Index(i)
			at.Duplicate("nodePort", p.NodePort)
		}
		seen[key{p.Protocol, p.NodePort}] = true
	}
	clear(seen)
	for i, p := range s.Spec.Ports {
		if seen[key{p.Protocol, p.Port}] {
			at := list.Index(i)
			at.Duplicate(valid.Self, valid.Untagged(corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		}
		seen[key{p.Protocol, p.Port}] = true
	}
}

func checkAffinity(f *valid.Field, s *corev1.ServiceSpec) {
	valid.RequiredOf(f, "sessionAffinity", s.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	const longest = 86400
	required := fmt.Sprintf("when session affinity type is %s", corev1.ServiceAffinityClientIP)
	switch c := s.SessionAffinityConfig; {
	case s.SessionAffinity == corev1.ServiceAffinityNone && c != nil:
		f.Forbidden("sessionAffinityConfig", fmt.Sprintf("must not be set when session affinity is %s", corev1.ServiceAffinityNone))
	case s.SessionAffinity != corev1.ServiceAffinityClientIP:
	case c == nil:
		f.Required("sessionAffinityConfig", required)
	default:
		at := f.Child("sessionAffinityConfig")
		if c.ClientIP == nil {
			at.Required("clientIP", required)
			return
		}
		client := at.Child("clientIP")
		if t := c.ClientIP.TimeoutSeconds; t == nil {
			client.Required("timeoutSeconds", required)
		} else if *t <= 0 || *t > longest {
			client.Invalid("timeoutSeconds", *t, fmt.Sprintf("must be greater than 0 and less than %d", longest))
		}
	}
}

// checkAddresses has the rules of addresses and their families.
func checkAddresses(f *valid.Field, s *corev1.ServiceSpec) {
	if s.Type == corev1.ServiceTypeExternalName {
		return
	}
	ips := f.Child("clusterIPs")
	switch {
	case s.ClusterIP == "" && len(s.ClusterIPs) > 0:
		ips.Invalid(valid.Self, s.ClusterIPs, "must be empty when `clusterIP` is not specified")
	case s.ClusterIP != "" && len(s.ClusterIPs) == 0:
		ips.Required(valid.Self, "")
	case s.ClusterIP != "" && s.ClusterIPs[0] != s.ClusterIP:
		ips.Invalid(valid.Self, s.ClusterIPs, "first value must match `clusterIP`")
	}
	families, seen := f.Child("ipFamilies"), sets.New[corev1.IPFamily]()
	for i, family := range s.IPFamilies {
		at := families.Index(i)
		valid.Supported(&at, valid.Self, family, corev1.IPv4Protocol, corev1.IPv6Protocol)
		if seen.Has(family) {
			at.Duplicate(valid.Self, family)
		}
		seen.Insert(family)
	}
	if s.IPFamilyPolicy != nil {
		valid.Supported(f, "ipFamilyPolicy", *s.IPFamilyPolicy, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack,
			corev1.IPFamilyPolicySingleStack)
	}
	before := f.Len()
	for i, ip := range s.ClusterIPs {
		at := ips.Index(i)
		switch {
		case i > 0 || ip != corev1.ClusterIPNone:
			at.IP(valid.Self, ip)
		case len(s.ClusterIPs) > 1:
			ips.Invalid(valid.Self, s.ClusterIPs, "'None' must be the first and only value")
		}
	}
	wrong := f.Len() > before
	if len(s.ClusterIPs) > 2 {
		ips.Invalid(valid.Self, s.ClusterIPs, "may only hold up to 2 values")
	}
	if wrong || isHeadless(s) {
		return
	}
	if len(s.ClusterIPs) > 1 && isIPv6(s.ClusterIPs[0]) == isIPv6(s.ClusterIPs[1]) {
		ips.Invalid(valid.Self, s.ClusterIPs, "may specify no more than one IP for each IP family")
	}
	for i, ip := range s.ClusterIPs {
		if i >= len(s.IPFamilies) {
			break
		}
		if six := isIPv6(ip); six != (s.IPFamilies[i] == corev1.IPv6Protocol) {
			at, want := ips.Index(i), "IPv4"
			if !six {
				want = "IPv6"
			}
			at.Invalid(valid.Self, ip, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%v]`", want, i))
		}
	}
}

func isIPv6(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Is6()
}

// checkBalancer has the rules of what only load balancers have.
func checkBalancer(f *valid.Field, s *corev1.Service) {
	const only = "may only be used when `type` is 'LoadBalancer'"
	spec := f.Child("spec")
	if ranges := s.Spec.LoadBalancerSourceRanges; len(ranges) > 0 {
		at := spec.Child("LoadBalancerSourceRanges")
		if !isBalancer(&s.Spec) {
			at.Forbidden(valid.Self, only)
		}
		for i, r := range ranges {
			one := at.Index(i)
			one.CIDR(valid.Self, strings.TrimSpace(r))
		}
	} else if v, ok := s.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]; ok {
		metadata := f.Child("metadata")
		list := metadata.Child("annotations")
		at := list.Key(corev1.AnnotationLoadBalancerSourceRangesKey)
		if !isBalancer(&s.Spec) {
			at.Forbidden(valid.Self, only)
		}
		if v = strings.TrimSpace(v); v != "" {
			for r := range strings.SplitSeq(v, ",") {
				at.CIDR(valid.Self, strings.TrimSpace(r))
			}
		}
	}
	if s.Spec.AllocateLoadBalancerNodePorts != nil && !isBalancer(&s.Spec) {
		spec.Forbidden("allocateLoadBalancerNodePorts", only)
	}
	checkBalancerClass(&spec, &s.Spec)
}

func checkBalancerClass(f *valid.Field, s *corev1.ServiceSpec) {
	switch {
	case s.LoadBalancerClass == nil:
	case isBalancer(s):
		f.Qualified("loadBalancerClass", *s.LoadBalancerClass)
	default:
		f.Forbidden("loadBalancerClass", "may only be used when `type` is 'LoadBalancer'")
	}
}

// isAccessible reports whether traffic comes from outside.
func isAccessible(s *corev1.ServiceSpec) bool {
	return isBalancer(s) || s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
}

// checkTraffic has the rules of which way traffic takes.
func checkTraffic(f *valid.Field, s *corev1.ServiceSpec) {
	if isAccessible(s) {
		valid.RequiredOf(f, "externalTrafficPolicy", s.ExternalTrafficPolicy,
			corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	} else if s.ExternalTrafficPolicy != "" {
		f.Invalid("externalTrafficPolicy", s.ExternalTrafficPolicy, "may only be set for externally-accessible services")
	}
	health := isBalancer(s) && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	switch n := s.HealthCheckNodePort; {
	case !health && n != 0:
		f.Invalid("healthCheckNodePort", n, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
	case health && n == 0:
		f.Required("healthCheckNodePort", "")
	case health:
		f.Port("healthCheckNodePort", n)
	}
	if p := s.InternalTrafficPolicy; p != nil {
		valid.Supported(f, "internalTrafficPolicy", *p, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
	} else if s.Type == corev1.ServiceTypeNodePort || isBalancer(s) || s.Type == corev1.ServiceTypeClusterIP {
		f.Required("internalTrafficPolicy", "")
	}
	if d := s.TrafficDistribution; d != nil {
		valid.Supported(f, "trafficDistribution", *d, corev1.ServiceTrafficDistributionPreferClose,
			corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
	}
}

// checkServiceChange has the rules of what a Service keeps.
func checkServiceChange(f *valid.Field, s, old *corev1.Service) {
	now, before := &s.Spec, &old.Spec
	const once = "may not change once set"
	if now.Type != corev1.ServiceTypeExternalName && before.Type != corev1.ServiceTypeExternalName {
		checkAddressChange(f, now, before)
		checkFamilyChange(f, now, before)
	}
	if isBalancer(now) && isBalancer(before) && kind.Value(now.LoadBalancerClass) != kind.Value(before.LoadBalancerClass) {
		f.Invalid("loadBalancerClass", now.LoadBalancerClass, once)
	}
	checkBalancerClass(f, now)
	health := func(s *corev1.ServiceSpec) bool {
		return isBalancer(s) && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	}
	if health(now) && health(before) && now.HealthCheckNodePort != before.HealthCheckNodePort {
		f.Forbidden("healthCheckNodePort", "field is immutable")
	}
}

func checkAddressChange(f *valid.Field, now, before *corev1.ServiceSpec) {
	if isHeadless(now) && isHeadless(before) {
		return
	}
	const once = "may not change once set"
	ips, is, was := f.Child("clusterIPs"), now.ClusterIPs, before.ClusterIPs
	if len(is) == len(was) {
		for i := range was {
			if is[i] != was[i] {
				at := ips.Index(i)
				at.Invalid(valid.Self, is, once)
			}
		}
		return
	}
	first := ips.Index(0)
	switch {
	case len(is) == 0:
		first.Invalid(valid.Self, is, "primary clusterIP can not be unset")
	case len(was) > 0 && is[0] != was[0]:
		first.Invalid(valid.Self, is, once)
	}
	if len(was) > len(is) && len(is) == 1 && kind.Value(now.IPFamilyPolicy) != corev1.IPFamilyPolicySingleStack {
		f.Invalid("ipFamilyPolicy", now.IPFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary clusterIP")
	}
}

func checkFamilyChange(f *valid.Field, now, before *corev1.ServiceSpec) {
	if isHeadless(now) || isHeadless(before) {
		return
	}
	const once = "may not change once set"
	families, is, was := f.Child("ipFamilies"), now.IPFamilies, before.IPFamilies
	first := families.Index(0)
	if len(is) == len(was) {
		for i := range was {
			if is[i] != was[i] {
				first.Invalid(valid.Self, is, once)
			}
		}
		return
	}
	if len(is) > 0 && len(was) > 0 && is[0] != was[0] {
		first.Invalid(valid.Self, now.ClusterIPs, once)
	}
	if len(was) > len(is) && len(is) == 1 && kind.Value(now.IPFamilyPolicy) != corev1.IPFamilyPolicySingleStack {
		f.Invalid("ipFamilyPolicy", now.IPFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary ipFamily")
	}
}

// validateServiceStatus has the rules of where a load balancer is reached.
func validateServiceStatus(s, _ *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	status := root.Child("status")
	f := status.Child("loadBalancer")
	list := f.Child("ingress")
	if !isBalancer(&s.Spec) && len(s.Status.LoadBalancer.Ingress) > 0 {
		list.Forbidden(valid.Self, "may only be used when `spec.type` is 'LoadBalancer'")
		return errs
	}
	for i, in := range s.Status.LoadBalancer.Ingress {
		at := list.Index(i)
		if in.IP != "" {
			at.IP("ip", in.IP)
		}
		switch mode := in.IPMode; {
		case in.IP != "" && mode == nil:
			at.Required("ipMode", "must be specified when `ip` is set")
		case in.IP == "" && mode != nil:
			at.Forbidden("ipMode", "may not be specified when `ip` is not set")
		case mode != nil:
			valid.Supported(&at, "ipMode", *mode, corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP)
		}
		if in.Hostname != "" {
			at.Subdomain("hostname", in.Hostname)
			if _, err := netip.ParseAddr(in.Hostname); err == nil {
				at.Invalid("hostname", in.Hostname, "must be a DNS name, not an IP address")
			}
		}
	}
	return errs
}

// serviceWarnings are about what is accepted, but has little effect.
func serviceWarnings(s, _ *corev1.Service) []string {
	var out []string
	if _, ok := s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		out = append(out, fmt.Sprintf("annotation %s is deprecated, please use %s instead",
			corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode))
	}
	if isHeadless(&s.Spec) {
		if s.Spec.LoadBalancerIP != "" {
			out = append(out, "spec.loadBalancerIP is ignored for headless services")
		}
		if len(s.Spec.ExternalIPs) > 0 {
			out = append(out, "spec.externalIPs is ignored for headless services")
		}
		if s.Spec.SessionAffinity != corev1.ServiceAffinityNone {
			out = append(out, "spec.SessionAffinity is ignored for headless services")
		}
	}
	external := s.Spec.Type == corev1.ServiceTypeExternalName
	if len(s.Spec.ExternalIPs) > 0 && !isHeadless(&s.Spec) && !external {
		out = append(out, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if external && len(s.Spec.ExternalIPs) > 0 {
		out = append(out, `spec.externalIPs is ignored when spec.type is "ExternalName"`)
	}
	if s.Spec.ExternalName != "" && !external {
		out = append(out, `spec.externalName is ignored when spec.type is not "ExternalName"`)
	}
	if kind.Value(s.Spec.TrafficDistribution) == corev1.ServiceTrafficDistributionPreferClose {
		out = append(out, `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`)
	}
	return out
}
