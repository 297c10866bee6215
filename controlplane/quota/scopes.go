// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// inScope reports whether a quota is about an object: one without scopes is about
// all, one with scopes about Pods and claims that are in each.
func inScope(q *corev1.ResourceQuotaSpec, obj any) bool {
	return !slices.ContainsFunc(requirements(q), func(r corev1.ScopedResourceSelectorRequirement) bool { return !scoped(r, obj) })
}

// requirements are the scopes and the selectors of a quota.
func requirements(q *corev1.ResourceQuotaSpec) []corev1.ScopedResourceSelectorRequirement {
	var out []corev1.ScopedResourceSelectorRequirement
	for _, scope := range q.Scopes {
		out = append(out, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.ScopeSelector != nil {
		out = append(out, q.ScopeSelector.MatchExpressions...)
	}
	return out
}

func scoped(r corev1.ScopedResourceSelectorRequirement, obj any) bool {
	switch o := obj.(type) {
	case *corev1.Pod:
		switch r.ScopeName {
		case corev1.ResourceQuotaScopeTerminating:
			return terminates(o)
		case corev1.ResourceQuotaScopeNotTerminating:
			return !terminates(o)
		case corev1.ResourceQuotaScopeBestEffort:
			return o.Status.QOSClass == corev1.PodQOSBestEffort
		case corev1.ResourceQuotaScopeNotBestEffort:
			return o.Status.QOSClass != corev1.PodQOSBestEffort
		case corev1.ResourceQuotaScopePriorityClass:
			return selects(r, o.Spec.PriorityClassName)
		case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
			return looksIntoOtherNamespaces(o.Spec.Affinity)
		}
	case *corev1.PersistentVolumeClaim:
		if r.ScopeName != corev1.ResourceQuotaScopeVolumeAttributesClass {
			return false
		}
		name := ""
		if o.Spec.VolumeAttributesClassName != nil {
			name = *o.Spec.VolumeAttributesClassName
		}
		return selects(r, name)
	}
	return false
}

func terminates(p *corev1.Pod) bool {
	return p.Spec.ActiveDeadlineSeconds != nil && *p.Spec.ActiveDeadlineSeconds >= 0
}

// selects reports whether a requirement is met by the name of a class, or by its
// absence.
func selects(r corev1.ScopedResourceSelectorRequirement, class string) bool {
	operator := map[corev1.ScopeSelectorOperator]selection.Operator{
		corev1.ScopeSelectorOpIn: selection.In, corev1.ScopeSelectorOpNotIn: selection.NotIn,
		corev1.ScopeSelectorOpExists: selection.Exists, corev1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
	}[r.Operator]
	requirement, err := labels.NewRequirement(string(r.ScopeName), operator, r.Values)
	if err != nil {
		return false
	}
	set := labels.Set{}
	if class != "" {
		set[string(r.ScopeName)] = class
	}
	return requirement.Matches(set)
}

// looksIntoOtherNamespaces reports whether an affinity is to Pods elsewhere.
func looksIntoOtherNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if a.PodAffinity != nil {
		terms, weighted = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if anti := a.PodAntiAffinity; anti != nil {
		terms = slices.Concat(terms, anti.RequiredDuringSchedulingIgnoredDuringExecution)
		weighted = slices.Concat(weighted, anti.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}
