// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	corev1 "k8s.io/api/core/v1"
)

// PodRequests returns what a Pod requests at most at any time of its life,
// without its overhead: what its containers and sidecars request together, or an
// init container with the sidecars before it, or what the Pod itself asks for.
func PodRequests(s *corev1.PodSpec) corev1.ResourceList {
	return podAmounts(s, func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Requests })
}

// PodLimits returns the same for limits.
func PodLimits(s *corev1.PodSpec) corev1.ResourceList {
	return podAmounts(s, func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Limits })
}

func podAmounts(s *corev1.PodSpec, of func(*corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	running, sidecars, starting := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range s.Containers {
		Add(running, of(&s.Containers[i].Resources))
	}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			Add(running, of(&c.Resources))
			Add(sidecars, of(&c.Resources))
			raise(starting, sidecars)
			continue
		}
		now := sidecars.DeepCopy()
		Add(now, of(&c.Resources))
		raise(starting, now)
	}
	raise(running, starting)
	if s.Resources != nil {
		for name, amount := range of(s.Resources) {
			running[name] = amount.DeepCopy()
		}
	}
	return running
}

// Add adds amounts to a list, in place.
func Add(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := to[name].DeepCopy()
		sum.Add(amount)
		if _, had := to[name]; !had {
			sum = amount.DeepCopy()
		}
		to[name] = sum
	}
}

// raise lifts the amounts of a list to those of another that are larger.
func raise(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		if has, ok := to[name]; !ok || amount.Cmp(has) > 0 {
			to[name] = amount.DeepCopy()
		}
	}
}
