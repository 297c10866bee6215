// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import "reflect"

// Change is what an attempt did to a status: a merge patch for everything
// but the conditions, and the conditions it set or removed, by type.
type Change struct {
	patch   map[string]any
	set     []map[string]any
	removed map[string]bool
}

const conditionsField = "conditions"

// Diff returns what leads from one status to another, nil for nothing.
func Diff(was, want map[string]any) *Change {
	c := Change{removed: map[string]bool{}}
	wasConditions, ok1 := Conditions(was)
	wantConditions, ok2 := Conditions(want)
	if ok1 && ok2 {
		was, want = without(was, conditionsField), without(want, conditionsField)
		now := map[string]bool{}
		for _, condition := range wantConditions {
			now[typeOf(condition)] = true
			if !reflect.DeepEqual(Find(wasConditions, typeOf(condition)), condition) {
				c.set = append(c.set, condition)
			}
		}
		for _, condition := range wasConditions {
			if !now[typeOf(condition)] {
				c.removed[typeOf(condition)] = true
			}
		}
	}
	c.patch = MergePatch(was, want)
	if len(c.patch) == 0 && len(c.set) == 0 && len(c.removed) == 0 {
		return nil
	}
	return &c
}

// On returns the status that the change makes of another one.
func (c *Change) On(status map[string]any) map[string]any {
	out := ApplyMergePatch(status, c.patch)
	if len(c.set) == 0 && len(c.removed) == 0 {
		return out
	}
	conditions, _ := Conditions(out)
	merged := make([]any, 0, len(conditions)+len(c.set))
	for _, condition := range conditions {
		if c.removed[typeOf(condition)] {
			continue
		}
		if set := Find(c.set, typeOf(condition)); set != nil {
			condition = set
		}
		merged = append(merged, condition)
	}
	for _, condition := range c.set {
		if Find(conditions, typeOf(condition)) == nil {
			merged = append(merged, condition)
		}
	}
	out[conditionsField] = merged
	return out
}

// Conditions returns the conditions of a status; false when the field is
// something else than a list of objects with distinct types.
func Conditions(status map[string]any) ([]map[string]any, bool) {
	field, ok := status[conditionsField]
	if !ok || field == nil {
		return nil, true
	}
	list, ok := field.([]any)
	if !ok {
		return nil, false
	}
	var out []map[string]any
	for _, item := range list {
		condition, ok := item.(map[string]any)
		if !ok || typeOf(condition) == "" || Find(out, typeOf(condition)) != nil {
			return nil, false
		}
		out = append(out, condition)
	}
	return out, true
}

func typeOf(condition map[string]any) string {
	t, _ := condition["type"].(string)
	return t
}

// Find returns the condition of a type, nil if there is none.
func Find(conditions []map[string]any, conditionType string) map[string]any {
	for _, c := range conditions {
		if typeOf(c) == conditionType {
			return c
		}
	}
	return nil
}
