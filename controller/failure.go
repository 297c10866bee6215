// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
)

// FailedReason is the reason of the conditions that [FailureConditions] sets.
const FailedReason = "ReconcileFailed"

// maxFailure is how many bytes of an error a condition gets.
const maxFailure = 1024

// FailureConditions tells users in the status why Reconcile, or the function of a
// finalizer, failed: with the reason [FailedReason] and the error as message. For an error
// that is retried Reconciling is True, for a [Terminal] one Stalled; Ready is False. What
// the reconciler says itself goes before: a Ready that is not True keeps its reason, and
// an object that it has called stalled stays as it is. The next attempt that does not fail
// takes these conditions away. Conflicts, and waiting for children, are no failures. The
// Go type of the kind needs Status.Conditions, a []metav1.Condition.
//
// An error that has another text each time is written each time: leave times and counts
// out of errors.
func FailureConditions() Option {
	return objectOption(func(s *settings[Request]) { s.failures = true })
}

// conditionsOf returns the conditions in the status of an object of a Go type.
func conditionsOf(obj client.Object) (*[]metav1.Condition, error) {
	if status := reflect.ValueOf(obj).Elem().FieldByName("Status"); status.IsValid() && status.Kind() == reflect.Struct {
		if field := status.FieldByName("Conditions"); field.IsValid() && field.CanAddr() {
			if list, ok := field.Addr().Interface().(*[]metav1.Condition); ok {
				return list, nil
			}
		}
	}
	return nil, fmt.Errorf("FailureConditions needs a field Status.Conditions of type []metav1.Condition, which %T does not have", obj)
}

// tellFailure sets or takes away the conditions of [FailureConditions], after an attempt that
// ended in err. What it does depends on the object alone, so that equal attempts end in
// equal conditions.
func tellFailure(obj client.Object, err error) error {
	conditions, unfit := conditionsOf(obj)
	if unfit != nil {
		return unfit
	}
	ours := func(conditionType string) bool {
		c := meta.FindStatusCondition(*conditions, conditionType)
		return c != nil && c.Reason == FailedReason
	}
	if err == nil || isQuiet(err) {
		for _, of := range []string{ReadyCondition, ReconcilingCondition, StalledCondition} {
			if err == nil && ours(of) {
				meta.RemoveStatusCondition(conditions, of)
			}
		}
		return nil
	}
	message := err.Error()
	var terminal *terminalError
	if errors.As(err, &terminal) {
		message = terminal.err.Error()
	}
	message = strings.ToValidUTF8(message[:min(len(message), maxFailure)], "")
	theirs := meta.FindStatusCondition(*conditions, ReadyCondition)
	if theirs == nil || theirs.Status == metav1.ConditionTrue || theirs.Reason == FailedReason {
		set(obj, conditions, ReadyCondition, metav1.ConditionFalse, FailedReason, message)
	}
	switch stalled := meta.IsStatusConditionTrue(*conditions, StalledCondition); {
	case stalled && !ours(StalledCondition): // the reconciler has told it
	case terminal != nil:
		meta.RemoveStatusCondition(conditions, ReconcilingCondition)
		set(obj, conditions, StalledCondition, metav1.ConditionTrue, FailedReason, message)
	default:
		meta.RemoveStatusCondition(conditions, StalledCondition)
		set(obj, conditions, ReconcilingCondition, metav1.ConditionTrue, FailedReason, message)
	}
	return nil
}
