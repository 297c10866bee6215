// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultAddresses keeps the one address of a Pod and the first of its list
// alike; the one decides.
func defaultAddresses(s *corev1.PodStatus) {
	switch {
	case len(s.PodIPs) == 0 && s.PodIP != "", len(s.PodIPs) > 0 && s.PodIP != "" && s.PodIP != s.PodIPs[0].IP:
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	case len(s.PodIPs) > 0 && s.PodIP == "":
		s.PodIP = s.PodIPs[0].IP
	}
}

// prepareStatus keeps what those who know older versions of a Pod leave out, and
// drops what features that are off by default would show. Old kubelets do not know owners
// well enough to be let near them.
func prepareStatus(ctx context.Context, p, old *corev1.Pod) {
	now, before := &p.Status, &old.Status
	if now.QOSClass == "" {
		now.QOSClass = before.QOSClass
	}
	if now.ObservedGeneration == 0 {
		now.ObservedGeneration = before.ObservedGeneration
	}
	seen := map[corev1.PodConditionType][]int64{} // a type may be there more than once
	for _, c := range before.Conditions {
		seen[c.Type] = append(seen[c.Type], c.ObservedGeneration)
	}
	for i := range now.Conditions {
		c := &now.Conditions[i]
		if c.Type == corev1.DisruptionTarget && marks(ctx) {
			p.ManagedFields = old.ManagedFields
		}
		known := seen[c.Type]
		if len(known) == 0 {
			continue
		}
		seen[c.Type] = known[1:]
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = known[0]
		}
	}
	now.NodeAllocatableResourceClaimStatuses = nil
	for _, list := range [][]corev1.ContainerStatus{now.InitContainerStatuses, now.ContainerStatuses, now.EphemeralContainerStatuses} {
		for i := range list {
			for j := range list[i].VolumeMounts {
				list[i].VolumeMounts[j].VolumeStatus = nil
			}
		}
	}
}

// statusWarnings are about addresses that others may read differently.
func statusWarnings(p, _ *corev1.Pod) []string {
	var out []string
	status := field.NewPath("status")
	for i, a := range p.Status.PodIPs {
		out = append(out, validation.GetWarningsForIP(status.Child("podIPs").Index(i).Child("ip"), a.IP)...)
	}
	for i, a := range p.Status.HostIPs {
		out = append(out, validation.GetWarningsForIP(status.Child("hostIPs").Index(i).Child("ip"), a.IP)...)
	}
	return out
}
