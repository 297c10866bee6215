// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// settle brings the conditions of a namespace to what is left in it, and reports
// whether any changed.
func settle(ns *corev1.Namespace, left []content, failures map[string]string, stale []schema.GroupVersion, now time.Time) bool {
	var remaining, waiting []string
	finalizers := map[string]int{}
	for _, c := range left {
		remaining = append(remaining, fmt.Sprintf("%s.%s has %d resource instances", c.resource.Plural, c.resource.Group, c.total))
		for f, count := range c.finalizers {
			finalizers[f] += count
		}
	}
	slices.Sort(remaining)
	for _, f := range slices.Sorted(maps.Keys(finalizers)) {
		waiting = append(waiting, fmt.Sprintf("%s in %d resource instances", f, finalizers[f]))
	}
	changed := false
	for _, c := range []corev1.NamespaceCondition{
		discoveryCondition(stale),
		condition(corev1.NamespaceDeletionGVParsingFailure, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
		failureCondition(failures),
		listCondition(corev1.NamespaceContentRemaining, remaining,
			"SomeResourcesRemain", "Some resources are remaining: ",
			"ContentRemoved", "All content successfully removed"),
		listCondition(corev1.NamespaceFinalizersRemaining, waiting,
			"SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: ",
			"ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	} {
		changed = setCondition(&ns.Status, c, now) || changed
	}
	return changed
}

func condition(t corev1.NamespaceConditionType, reason, message string) corev1.NamespaceCondition {
	return corev1.NamespaceCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

func listCondition(t corev1.NamespaceConditionType, list []string, badReason, badMessage, goodReason, goodMessage string) corev1.NamespaceCondition {
	c := condition(t, goodReason, goodMessage)
	if len(list) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, badReason, badMessage+strings.Join(list, ", ")
	}
	return c
}

// setCondition adds or changes one condition and reports whether it did.
func setCondition(status *corev1.NamespaceStatus, c corev1.NamespaceCondition, now time.Time) bool {
	c.LastTransitionTime = metav1.NewTime(now)
	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
			return false
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		*old = c
		return true
	}
	status.Conditions = append(status.Conditions, c)
	return true
}

func failureCondition(failures map[string]string) corev1.NamespaceCondition {
	c := condition(corev1.NamespaceDeletionContentFailure, "ContentDeleted", "All content successfully deleted, may be waiting on finalization")
	if len(failures) > 0 {
		c.Status, c.Reason = corev1.ConditionTrue, "ContentDeletionFailed"
		c.Message = fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(failures), strings.Join(slices.Sorted(maps.Values(failures)), ", "))
	}
	return c
}

// discoveryCondition names the versions whose servers do not say what they serve: what they
// have in the namespace is unknown.
func discoveryCondition(stale []schema.GroupVersion) corev1.NamespaceCondition {
	c := condition(corev1.NamespaceDeletionDiscoveryFailure, "ResourcesDiscovered", "All resources successfully discovered")
	if len(stale) > 0 {
		var all []string
		for _, gv := range stale {
			all = append(all, fmt.Sprintf("%s: stale GroupVersion discovery: %s", gv, gv))
		}
		slices.Sort(all)
		c.Status, c.Reason = corev1.ConditionTrue, "DiscoveryFailed"
		c.Message = fmt.Sprintf("Discovery failed for some groups, %d failing: unable to retrieve the complete list of server APIs: %s", len(all), strings.Join(all, ", "))
	}
	return c
}
