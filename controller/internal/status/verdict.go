// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Verdict is what the conditions of an object say as a whole.
type Verdict uint8

const (
	Unknown     Verdict = iota // there is no Ready, or it is Unknown
	IsReady                    // Ready is True
	Progressing                // Ready is False, Reconciling is True
	IsStalled                  // Stalled is True
	Unready                    // Ready is False, and that is all
)

// Judge returns the verdict of a status, and the condition that says it.
func Judge(values map[string]any) (Verdict, map[string]any) {
	conditions, _ := Conditions(values)
	is := func(conditionType string, want metav1.ConditionStatus) map[string]any {
		c := Find(conditions, conditionType)
		if text, _ := c["status"].(string); text != string(want) {
			return nil
		}
		return c
	}
	if c := is(Stalled, metav1.ConditionTrue); c != nil {
		return IsStalled, c
	}
	if c := is(Ready, metav1.ConditionTrue); c != nil {
		return IsReady, c
	}
	c := is(Ready, metav1.ConditionFalse)
	switch {
	case c == nil:
		return Unknown, nil
	case is(Reconciling, metav1.ConditionTrue) != nil:
		return Progressing, c
	}
	return Unready, c
}
