// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import "reflect"

// Equal compares JSON values. Objects that share what they have in common are
// compared in the time that their differences take. Frozen values equal decoded ones.
func Equal(a, b any) bool {
	if x, frozen := a.(Frozen); frozen {
		if y, both := b.(Frozen); both {
			return x == y
		}
		a = x.Thaw()
	} else if y, frozen := b.(Frozen); frozen {
		b = y.Thaw()
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer() {
			return true
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !Equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if len(a) == 0 || &a[0] == &b[0] {
			return true
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		switch b.(type) {
		case map[string]any, []any:
			return false
		}
		return a == b
	}
}
