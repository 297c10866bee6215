// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// qosClass follows from the resources that the Pod as a whole asks for, or else
// from those of its containers.
func qosClass(s *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, something := true, false
	note := func(r *corev1.ResourceRequirements) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			something = something || request.Sign() > 0 || limit.Sign() > 0
			guaranteed = guaranteed && limit.Sign() > 0 && request.Cmp(limit) == 0
		}
	}
	if r := s.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		note(r)
	} else {
		for _, c := range slices.Concat(s.InitContainers, s.Containers) {
			note(&c.Resources)
		}
	}
	switch {
	case !something:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}
