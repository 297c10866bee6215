// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// defaultPod fills in a Pod. Some defaults are for Pods alone, not for the
// templates of workloads.
func defaultPod(p *corev1.Pod) {
	kind.Fill(&p.Spec.EnableServiceLinks, true)
	defaultAddresses(&p.Status)
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
		}
	}
	podspec.Default(&p.Spec)
	if p.Spec.HostNetwork {
		for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range containers {
				for j := range containers[i].Ports {
					kind.OrDefault(&containers[i].Ports[j].HostPort, containers[i].Ports[j].ContainerPort)
				}
			}
		}
	}
}

// requestLimits requests what is limited, where nothing else is asked for.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

// defaultWhole sets what a Pod as a whole asks for and is limited to where it says something
// of it already: what its containers add up to, or else what it is limited to. Admission has
// seen the Pod by then, so that what it gives containers counts (KEP-2837).
func defaultWhole(s *corev1.PodSpec) {
	r := s.Resources
	if r == nil || len(r.Requests)+len(r.Limits) == 0 {
		return
	}
	set := func(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
		if _, ok := (*list)[name]; ok {
			return
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q.DeepCopy()
	}
	limits := podspec.Needed(s, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
	for name, q := range limits {
		if _, requested := r.Requests[name]; valid.IsHugePages(string(name)) && !requested {
			set(&r.Limits, name, q)
		}
	}
	for name, q := range podspec.Needed(s, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }) {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			set(&r.Requests, name, q)
		}
	}
	for name, q := range r.Limits {
		if isOfWhole(name) {
			set(&r.Requests, name, q)
		}
	}
	for name, q := range r.Requests {
		if limit, ok := limits[name]; ok && isOfWhole(name) && allLimited(s, name) {
			if q.Cmp(limit) > 0 {
				limit = q
			}
			set(&r.Limits, name, limit)
		}
	}
}

// isOfWhole reports whether a Pod as a whole can ask for a resource.
func isOfWhole(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || valid.IsHugePages(string(name))
}

// allLimited reports whether all containers have a limit for a resource. Ephemeral containers
// cannot have one.
func allLimited(s *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			if _, ok := containers[i].Resources.Limits[name]; !ok {
				return false
			}
		}
	}
	return len(s.EphemeralContainers) == 0
}

// matchOwnLabels adds to the selectors of a new Pod the labels whose values it
// shall share, or not share, with its neighbours.
func matchOwnLabels(p *corev1.Pod) {
	add := func(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if v, ok := p.Labels[key]; ok && selector != nil {
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{v}})
			}
		}
	}
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		add(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
	term := func(t *corev1.PodAffinityTerm) {
		add(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		add(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	terms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			term(&required[i])
		}
		for i := range preferred {
			term(&preferred[i].PodAffinityTerm)
		}
	}
	if a := p.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
}
