// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/status"
)

// verdict is what the conditions of an object say as a whole.
type verdict uint8

const (
	unknown     verdict = iota // there is no Ready, or it is Unknown
	ready                      // Ready is True
	progressing                // Ready is False, Reconciling is True
	stalled                    // Stalled is True
	unready                    // Ready is False, and that is all
)

// judge returns the verdict of a status, and the condition that says it.
func judge(values map[string]any) (verdict, map[string]any) {
	conditions, _ := status.Conditions(values)
	is := func(conditionType string, want metav1.ConditionStatus) map[string]any {
		c := status.Find(conditions, conditionType)
		if text, _ := c["status"].(string); text != string(want) {
			return nil
		}
		return c
	}
	if c := is(StalledCondition, metav1.ConditionTrue); c != nil {
		return stalled, c
	}
	if c := is(ReadyCondition, metav1.ConditionTrue); c != nil {
		return ready, c
	}
	c := is(ReadyCondition, metav1.ConditionFalse)
	switch {
	case c == nil:
		return unknown, nil
	case is(ReconcilingCondition, metav1.ConditionTrue) != nil:
		return progressing, c
	}
	return unready, c
}

// emitTransition tells users that the verdict on an object has changed: stalls, and
// what ceases to be ready without a reason to expect more, as Warnings, the rest
// as Normal. A stall for another reason is told as well. Objects begin by not
// being ready: only a stall is news of a new one.
func emitTransition(ctx context.Context, obj client.Object, was, now map[string]any) {
	before, old := judge(was)
	after, condition := judge(now)
	reason, _ := condition["reason"].(string)
	switch {
	case after == unknown:
		return
	case after == before && (after != stalled || old["reason"] == condition["reason"]):
		return
	case before == unknown && (after == progressing || after == unready):
		return
	}
	message, _ := condition["message"].(string)
	Emit(ctx, UserEvent{
		Regarding: obj, Warning: after == stalled || after == unready,
		Reason: reason, Action: "Reconcile", Note: message,
	})
}
