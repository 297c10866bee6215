// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// checkChange admits only the few changes that a Pod can follow.
func checkChange(f *valid.Field, p, old *corev1.Pod) {
	metadata := f.Child("metadata")
	annotations := metadata.Child("annotations")
	checkAnnotationChange(&annotations, p.Annotations, old.Annotations)
	if p.Annotations != nil {
		podspec.CheckAnnotations(&annotations, p.Annotations, &p.Spec)
	}
	spec, now, before := f.Child("spec"), &p.Spec, &old.Spec
	if !checkImages(&spec, "containers", now.Containers, before.Containers) ||
		!checkImages(&spec, "initContainers", now.InitContainers, before.InitContainers) {
		return
	}
	if d := now.ActiveDeadlineSeconds; d != nil {
		if *d < 0 || *d > math.MaxInt32 {
			spec.Between("activeDeadlineSeconds", *d, 0, math.MaxInt32)
			return
		}
		if before.ActiveDeadlineSeconds != nil && *before.ActiveDeadlineSeconds < *d {
			spec.Invalid("activeDeadlineSeconds", *d, "must be less than or equal to previous value")
			return
		}
	} else if before.ActiveDeadlineSeconds != nil {
		spec.Invalid("activeDeadlineSeconds", d, "must not update from a positive integer to nil value")
	}
	tolerations := spec.Child("tolerations")
	if slices.ContainsFunc(before.Tolerations, func(t corev1.Toleration) bool { return !keepsToleration(now.Tolerations, t) }) {
		tolerations.Forbidden(valid.Self, "existing toleration can not be modified except its tolerationSeconds")
	} else {
		tolerations.Tolerations(now.Tolerations)
	}
	checkGateChange(&spec, now.SchedulingGates, before.SchedulingGates)
	if equality.Semantic.DeepEqual(now, before) {
		return
	}
	if rest := unchangeable(&spec, now, before); !equality.Semantic.DeepEqual(rest, before) {
		spec.Forbidden(valid.Self, "pod updates may not change fields other than `spec.containers[*].image`,"+
			"`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"+valid.Difference(before, rest))
	}
}

func checkImages(f *valid.Field, name string, now, before []corev1.Container) bool {
	list := f.Child(name)
	if len(now) != len(before) {
		list.Forbidden(valid.Self, "pod updates may not add or remove containers")
		return false
	}
	for i := range now {
		at := list.Index(i)
		at.NonEmpty("image", now[i].Image)
		podspec.CheckImage(&at, &now[i])
	}
	return true
}

func keepsToleration(now []corev1.Toleration, old corev1.Toleration) bool {
	return slices.ContainsFunc(now, func(t corev1.Toleration) bool {
		t.TolerationSeconds = old.TolerationSeconds
		return equality.Semantic.DeepEqual(t, old)
	})
}

func checkGateChange(f *valid.Field, now, before []corev1.PodSchedulingGate) {
	list := f.Child("schedulingGates")
	for i, g := range now {
		if !slices.Contains(before, g) {
			at := list.Index(i)
			at.Forbidden("name", fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", g.Name))
		}
	}
}

// unchangeable returns the new spec with what may change as it was before.
func unchangeable(f *valid.Field, now, before *corev1.PodSpec) *corev1.PodSpec {
	rest := now.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = before.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = before.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds, rest.SchedulingGates, rest.Tolerations = before.ActiveDeadlineSeconds, before.SchedulingGates, before.Tolerations
	if g := before.TerminationGracePeriodSeconds; g != nil && *g < 0 && kind.Value(rest.TerminationGracePeriodSeconds) == 1 {
		rest.TerminationGracePeriodSeconds = g
	}
	if len(before.SchedulingGates) == 0 {
		return rest
	}
	// A Pod that is not to be placed yet may become choosier.
	if !maps.Equal(rest.NodeSelector, before.NodeSelector) {
		for key, v := range before.NodeSelector {
			if rest.NodeSelector[key] != v {
				f.Invalid("nodeSelector", rest.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
				break
			}
		}
		rest.NodeSelector = before.NodeSelector
	}
	var was, is *corev1.NodeAffinity
	if before.Affinity != nil {
		was = before.Affinity.NodeAffinity
	}
	if rest.Affinity != nil {
		is = rest.Affinity.NodeAffinity
	}
	if equality.Semantic.DeepEqual(was, is) {
		return rest
	}
	affinity := f.Child("affinity")
	checkNodeAffinityChange(&affinity, is, was)
	switch {
	case rest.Affinity == nil:
		rest.Affinity = &corev1.Affinity{NodeAffinity: was}
	case before.Affinity == nil && rest.Affinity.PodAffinity == nil && rest.Affinity.PodAntiAffinity == nil:
		rest.Affinity = nil
	default:
		rest.Affinity.NodeAffinity = was
	}
	return rest
}

func checkNodeAffinityChange(f *valid.Field, now, before *corev1.NodeAffinity) {
	if before == nil || before.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	node := f.Child("nodeAffinity")
	at := node.Child("requiredDuringSchedulingIgnoredDuringExecution")
	terms := at.Child("nodeSelectorTerms")
	was := before.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	var is []corev1.NodeSelectorTerm
	if now != nil && now.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		is = now.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	if len(was) > 0 && len(is) != len(was) {
		terms.Invalid(valid.Self, is, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
		return
	}
	for i := range was {
		if !startsWith(is[i].MatchExpressions, was[i].MatchExpressions) || !startsWith(is[i].MatchFields, was[i].MatchFields) ||
			len(was[i].MatchExpressions)+len(was[i].MatchFields) == 0 && len(is[i].MatchExpressions)+len(is[i].MatchFields) > 0 {
			one := terms.Index(i)
			one.Invalid(valid.Self, is[i], "only additions are allowed (no mutations or deletions)")
		}
	}
}

func startsWith(now, before []corev1.NodeSelectorRequirement) bool {
	return len(now) >= len(before) && equality.Semantic.DeepEqual(now[:len(before)], before)
}

// checkAnnotationChange refuses changes of what the kubelet has acted on.
func checkAnnotationChange(f *valid.Field, now, before map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if v, ok := now[key]; ok && v == before[key] {
			continue
		}
		at := f.Key(key)
		if strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) {
			at.Forbidden(valid.Self, "may not remove or update AppArmor annotations")
		}
		if key == corev1.MirrorPodAnnotationKey {
			at.Forbidden(valid.Self, "may not remove or update mirror pod annotation")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if _, had := before[key]; had {
			continue
		}
		at := f.Key(key)
		if strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) {
			at.Forbidden(valid.Self, "may not add AppArmor annotations")
		}
		if key == corev1.MirrorPodAnnotationKey {
			at.Forbidden(valid.Self, "may not add mirror pod annotation")
		}
	}
}
