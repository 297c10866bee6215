// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
)

// The types of conditions; see package controller.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// FailedReason is the reason of the conditions of a [Failure].
const FailedReason = "ReconcileFailed"

// maxFailure is how many bytes of an error a condition gets.
const maxFailure = 1024

// Failure is how an attempt ended.
type Failure struct {
	Err      error // nil: well
	Terminal bool  // it is not retried
}

// ConditionsOf returns the conditions in the status of an object of a Go type.
func ConditionsOf(obj client.Object) (*[]metav1.Condition, error) {
	if status := reflect.ValueOf(obj).Elem().FieldByName("Status"); status.IsValid() && status.Kind() == reflect.Struct {
		if field := status.FieldByName("Conditions"); field.IsValid() && field.CanAddr() {
			if list, ok := field.Addr().Interface().(*[]metav1.Condition); ok {
				return list, nil
			}
		}
	}
	return nil, fmt.Errorf("FailureConditions needs a field Status.Conditions of type []metav1.Condition, which %T does not have", obj)
}

// Tell sets or takes away the conditions of failures, after an attempt that ended in err:
// nil, or an error that is quiet where it is no failure, and terminal where it is not
// retried. What it does depends on the object alone, so that equal attempts end in equal
// conditions.
func (f Failure) Tell(obj client.Object) error {
	conditions, unfit := ConditionsOf(obj)
	if unfit != nil {
		return unfit
	}
	set := func(of string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: of, Status: status, Reason: FailedReason, Message: message(f.Err), ObservedGeneration: obj.GetGeneration()})
	}
	ours := func(conditionType string) bool {
		c := meta.FindStatusCondition(*conditions, conditionType)
		return c != nil && c.Reason == FailedReason
	}
	if f.Err == nil {
		for _, of := range []string{Ready, Reconciling, Stalled} {
			if ours(of) {
				meta.RemoveStatusCondition(conditions, of)
			}
		}
		return nil
	}
	theirs := meta.FindStatusCondition(*conditions, Ready)
	if theirs == nil || theirs.Status == metav1.ConditionTrue || theirs.Reason == FailedReason {
		set(Ready, metav1.ConditionFalse)
	}
	switch stalled := meta.IsStatusConditionTrue(*conditions, Stalled); {
	case stalled && !ours(Stalled): // the reconciler has told it
	case f.Terminal:
		meta.RemoveStatusCondition(conditions, Reconciling)
		set(Stalled, metav1.ConditionTrue)
	default:
		meta.RemoveStatusCondition(conditions, Stalled)
		set(Reconciling, metav1.ConditionTrue)
	}
	return nil
}

// message is the text of an error as a condition has it.
func message(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxFailure)], "")
}
