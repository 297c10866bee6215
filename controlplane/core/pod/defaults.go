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
	if p.Spec.Resources != nil {
		defaultWhole(&p.Spec)
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

// defaultWhole sets what a Pod as a whole asks for where it says something of it
// already: what its containers add up to, or else what it is limited to.
func defaultWhole(s *corev1.PodSpec) {
	r := s.Resources
	set := func(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
		if _, ok := (*list)[name]; ok {
			return
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q.DeepCopy()
	}
	if len(r.Limits)+len(r.Requests) > 0 {
		for name, q := range podspec.Needed(s, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits }) {
			if _, requested := r.Requests[name]; valid.IsHugePages(string(name)) && !requested {
				set(&r.Limits, name, q)
			}
		}
	}
	if len(r.Limits) == 0 {
		return
	}
	for name, q := range podspec.Needed(s, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }) {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			set(&r.Requests, name, q)
		}
	}
	for name, q := range r.Limits {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory || valid.IsHugePages(string(name)) {
			set(&r.Requests, name, q)
		}
	}
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
