// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// checkAffinity has the rules of which nodes and neighbours a Pod wants.
func checkAffinity(f *valid.Field, a *corev1.Affinity) {
	if a == nil {
		return
	}
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	if n := a.NodeAffinity; n != nil {
		in := f.Child("nodeAffinity")
		if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			at := in.Child(required)
			at.NodeSelector(n.RequiredDuringSchedulingIgnoredDuringExecution, true)
		}
		list := in.Child(preferred)
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			t, at := &n.PreferredDuringSchedulingIgnoredDuringExecution[i], list.Index(i)
			checkWeight(&at, t.Weight)
			term := at.Child("preference")
			term.NodeSelectorTerm(&t.Preference, false)
		}
	}
	pods := func(name string, must []corev1.PodAffinityTerm, should []corev1.WeightedPodAffinityTerm) {
		in := f.Child(name)
		list := in.Child(required)
		for i := range must {
			at := list.Index(i)
			checkPodTerm(&at, &must[i])
		}
		list = in.Child(preferred)
		for i := range should {
			at := list.Index(i)
			checkWeight(&at, should[i].Weight)
			term := at.Child("podAffinityTerm")
			checkPodTerm(&term, &should[i].PodAffinityTerm)
		}
	}
	if p := a.PodAffinity; p != nil {
		pods("podAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		pods("podAntiAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func checkWeight(f *valid.Field, weight int32) {
	if weight < 1 || weight > 100 {
		f.Invalid("weight", weight, "must be in the range 1-100")
	}
}

func checkPodTerm(f *valid.Field, t *corev1.PodAffinityTerm) {
	f.Selector("labelSelector", t.LabelSelector)
	f.Selector("namespaceSelector", t.NamespaceSelector)
	for _, name := range t.Namespaces {
		f.Namespace("namespace", name)
	}
	checkMatchKeys(f, t.MatchLabelKeys, t.MismatchLabelKeys, t.LabelSelector)
	if t.TopologyKey == "" {
		f.Required("topologyKey", "can not be empty")
	}
	f.LabelKey("topologyKey", t.TopologyKey)
}

// checkMatchKeys has the rules of labels whose values are taken from the Pod.
func checkMatchKeys(f *valid.Field, match, mismatch []string, selector *metav1.LabelSelector) {
	keys := func(name string, list []string) {
		at := f.Child(name)
		if len(list) > 0 && selector == nil {
			at.Forbidden(valid.Self, "must not be specified when labelSelector is not set")
			return
		}
		for i, key := range list {
			one := at.Index(i)
			one.LabelKey(valid.Self, key)
		}
	}
	keys("matchLabelKeys", match)
	keys("mismatchLabelKeys", mismatch)
	if selector != nil && len(match) > 0 {
		position, used := map[string]int{}, sets.KeySet(selector.MatchLabels)
		for i, key := range match {
			position[key] = i
		}
		for _, e := range selector.MatchExpressions {
			// A key of the Pod was merged into the selector; it may be there once.
			if i, ok := position[e.Key]; ok && used.Has(e.Key) {
				at := f.Index(i)
				at.Invalid(valid.Self, e.Key, "exists in both matchLabelKeys and labelSelector")
			}
			used.Insert(e.Key)
		}
	}
	other := sets.New(mismatch...)
	for i, key := range match {
		if other.Has(key) {
			list := f.Child("matchLabelKeys")
			at := list.Index(i)
			at.Invalid(valid.Self, key, "exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
}

// checkSpread has the rules of how Pods are spread over zones and nodes.
func checkSpread(f *valid.Field, list []corev1.TopologySpreadConstraint) {
	for i := range list {
		c, at := &list[i], f.Index(i)
		at.Positive("maxSkew", int64(c.MaxSkew))
		if c.TopologyKey == "" {
			at.Required("topologyKey", "can not be empty")
		}
		valid.Supported(&at, "whenUnsatisfiable", c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
		for _, other := range list[i+1:] {
			if other.TopologyKey == c.TopologyKey && other.WhenUnsatisfiable == c.WhenUnsatisfiable {
				at.Duplicate("{topologyKey, whenUnsatisfiable}", fmt.Sprintf("{%v, %v}", c.TopologyKey, c.WhenUnsatisfiable))
				break
			}
		}
		if n := c.MinDomains; n != nil {
			at.Positive("minDomains", int64(*n))
			if c.WhenUnsatisfiable != corev1.DoNotSchedule {
				at.Invalid("minDomains", *n, fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, c.WhenUnsatisfiable))
			}
		}
		policy := func(name string, p *corev1.NodeInclusionPolicy) {
			if p != nil {
				valid.Supported(&at, name, *p, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
			}
		}
		policy("nodeAffinityPolicy", c.NodeAffinityPolicy)
		policy("nodeTaintsPolicy", c.NodeTaintsPolicy)
		checkMatchKeys(&at, c.MatchLabelKeys, nil, c.LabelSelector)
		at.Selector("labelSelector", c.LabelSelector)
	}
}
