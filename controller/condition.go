// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
)

// The types of conditions that tools know: kubectl wait, GitOps tools and
// package managers look at Ready, and at the other two to tell progress from
// failure.
const (
	// ReadyCondition is True when the object does what was asked for.
	ReadyCondition = "Ready"
	// ReconcilingCondition is True while work goes on; it is absent otherwise.
	ReconcilingCondition = "Reconciling"
	// StalledCondition is True when only a change by somebody can help; it is
	// absent otherwise.
	StalledCondition = "Stalled"
)

// SetCondition sets a condition in the list of obj's status: it fills in the
// observed generation, and the time when the status of the condition changed.
// It reports whether anything changed. The reason must be set, in UpperCamelCase.
func SetCondition(obj client.Object, conditions *[]metav1.Condition, c metav1.Condition) bool {
	if c.ObservedGeneration == 0 {
		c.ObservedGeneration = obj.GetGeneration()
	}
	return meta.SetStatusCondition(conditions, c)
}

// SetReady sets the condition Ready to True and takes Reconciling and Stalled
// away.
func SetReady(obj client.Object, conditions *[]metav1.Condition, reason, message string) {
	meta.RemoveStatusCondition(conditions, ReconcilingCondition)
	meta.RemoveStatusCondition(conditions, StalledCondition)
	set(obj, conditions, ReadyCondition, metav1.ConditionTrue, reason, message)
}

// SetReconciling sets Ready to False and Reconciling to True: it will be ready
// without anybody's help.
func SetReconciling(obj client.Object, conditions *[]metav1.Condition, reason, message string) {
	meta.RemoveStatusCondition(conditions, StalledCondition)
	set(obj, conditions, ReadyCondition, metav1.ConditionFalse, reason, message)
	set(obj, conditions, ReconcilingCondition, metav1.ConditionTrue, reason, message)
}

// SetStalled sets Ready to False and Stalled to True: somebody has to change
// something.
func SetStalled(obj client.Object, conditions *[]metav1.Condition, reason, message string) {
	meta.RemoveStatusCondition(conditions, ReconcilingCondition)
	set(obj, conditions, ReadyCondition, metav1.ConditionFalse, reason, message)
	set(obj, conditions, StalledCondition, metav1.ConditionTrue, reason, message)
}

func set(obj client.Object, conditions *[]metav1.Condition, conditionType string, status metav1.ConditionStatus, reason, message string) {
	SetCondition(obj, conditions, metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message})
}

// emitTransition tells users that the status of Ready has changed.
func emitTransition(ctx context.Context, obj client.Object, was, now map[string]any) {
	status := func(status map[string]any) (string, map[string]any) {
		conditions, _ := conditionsOf(status)
		ready := find(conditions, ReadyCondition)
		text, _ := ready["status"].(string)
		return text, ready
	}
	before, _ := status(was)
	after, ready := status(now)
	if after == before || after == "" || after == string(metav1.ConditionUnknown) {
		return
	}
	reason, _ := ready["reason"].(string)
	message, _ := ready["message"].(string)
	if before == "" && after != string(metav1.ConditionTrue) {
		return // every object begins by not being ready
	}
	Emit(ctx, Note{
		Regarding: obj, Warning: after != string(metav1.ConditionTrue),
		Reason: reason, Action: "Reconcile", Text: message,
	})
}
