// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/steer-dev/steer/controlplane/core/kind"
)

// keepAllocated gives an update that says nothing about them the addresses and
// ports that its Service has.
func keepAllocated(s, old *corev1.Service) {
	if s.Spec.Type != corev1.ServiceTypeExternalName && old.Spec.Type != corev1.ServiceTypeExternalName {
		kind.OrDefault(&s.Spec.ClusterIP, old.Spec.ClusterIP)
		if len(s.Spec.ClusterIPs) == 0 {
			s.Spec.ClusterIPs = old.Spec.ClusterIPs
		}
	}
	if wantsNodePorts(s) && wantsNodePorts(old) {
		keepNodePorts(s.Spec.Ports, old.Spec.Ports)
	}
	if wantsHealthPort(s) && wantsHealthPort(old) {
		kind.OrDefault(&s.Spec.HealthCheckNodePort, old.Spec.HealthCheckNodePort)
	}
}

// keepNodePorts finds the ports that a Service has by their names.
func keepNodePorts(now, before []corev1.ServicePort) {
	names, taken := map[string]int32{}, map[int32]bool{}
	for _, p := range now {
		taken[p.NodePort] = true
	}
	for _, p := range before {
		names[p.Name] = p.NodePort
	}
	for i := range now {
		if had := names[now[i].Name]; now[i].NodePort == 0 && !taken[had] {
			now[i].NodePort = had
		}
	}
}

// prepareService takes from an update what the old type had and the new one has no
// use for, unless it is the update that brings it.
func prepareService(_ context.Context, s, old *corev1.Service) {
	if policy := s.Spec.InternalTrafficPolicy; s.Spec.Type == corev1.ServiceTypeExternalName &&
		(kind.Value(policy) == corev1.ServiceInternalTrafficPolicyCluster || kind.Value(policy) == corev1.ServiceInternalTrafficPolicyLocal) {
		s.Spec.InternalTrafficPolicy = nil // which some clients are given by default
	}
	if old == nil {
		return
	}
	now, before := &s.Spec, &old.Spec
	if hasNodePorts(before) && !hasNodePorts(now) {
		dropNodePorts(now.Ports, before.Ports)
	}
	if wantsHealthPort(old) && !wantsHealthPort(s) && now.HealthCheckNodePort == before.HealthCheckNodePort {
		now.HealthCheckNodePort = 0
	}
	if isAccessible(before) && !isAccessible(now) && now.ExternalTrafficPolicy == before.ExternalTrafficPolicy {
		now.ExternalTrafficPolicy = ""
	}
	if isBalancer(before) && !isBalancer(now) {
		if equality.Semantic.DeepEqual(now.AllocateLoadBalancerNodePorts, before.AllocateLoadBalancerNodePorts) {
			now.AllocateLoadBalancerNodePorts = nil
		}
		if equality.Semantic.DeepEqual(now.LoadBalancerClass, before.LoadBalancerClass) {
			now.LoadBalancerClass = nil
		}
	}
	if !isBalancer(now) {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	if before.Type != corev1.ServiceTypeExternalName && now.Type == corev1.ServiceTypeExternalName {
		dropAddresses(now, before)
	}
}

func dropNodePorts(now, before []corev1.ServicePort) {
	was := map[int32]bool{0: true}
	for _, p := range before {
		was[p.NodePort] = true
	}
	if slices.ContainsFunc(now, func(p corev1.ServicePort) bool { return !was[p.NodePort] }) {
		return
	}
	for i := range now {
		now[i].NodePort = 0
	}
}

func dropAddresses(now, before *corev1.ServiceSpec) {
	if now.ClusterIP == before.ClusterIP && slices.Equal(now.ClusterIPs, before.ClusterIPs) {
		now.ClusterIP, now.ClusterIPs = "", nil
	}
	if slices.Equal(now.IPFamilies, before.IPFamilies) {
		now.IPFamilies = nil
	}
	if equality.Semantic.DeepEqual(now.IPFamilyPolicy, before.IPFamilyPolicy) {
		now.IPFamilyPolicy = nil
	}
}

// alignAddresses lets a client that knows only one of clusterIP and clusterIPs
// change the other with it.
func alignAddresses(now, before *corev1.ServiceSpec) {
	if len(now.ClusterIPs) == 0 && now.ClusterIP == before.ClusterIP {
		now.ClusterIPs = before.ClusterIPs
	}
	switch same := slices.Equal(now.ClusterIPs, before.ClusterIPs); {
	case now.ClusterIP == before.ClusterIP || !same:
	case now.ClusterIP == "":
		now.ClusterIPs = nil
	default:
		now.ClusterIPs = []string{now.ClusterIP}
	}
}

func hasNodePorts(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
}

func wantsNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort ||
		s.Spec.Type == corev1.ServiceTypeLoadBalancer && (s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts)
}

func wantsHealthPort(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
