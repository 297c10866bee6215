// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package same

import "reflect"

// Contents compares the contents of two unstructured objects, without one of
// their fields.
func Contents(a, b map[string]any, without string) bool {
	counted := 0
	for name, x := range a {
		if name == without {
			continue
		}
		y, ok := b[name]
		if !ok || !JSON(x, y) {
			return false
		}
		counted++
	}
	others := len(b)
	if _, ok := b[without]; ok {
		others--
	}
	return counted == others
}

// JSON compares values as they are in unstructured objects.
func JSON(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case int64:
		y, ok := b.(int64)
		return ok && x == y
	case float64:
		y, ok := b.(float64)
		return ok && x == y
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for name, value := range x {
			other, ok := y[name]
			if !ok || !JSON(value, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !JSON(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}
