// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

import "reflect"

// Equal compares JSON values. Subtrees that share memory are not walked. A raw value
// equals its decoded form.
func Equal(a, b any) bool {
	if x, isRaw := a.(Text); isRaw {
		if y, both := b.(Text); both {
			return x == y
		}
		a = x.Decode()
	} else if y, isRaw := b.(Text); isRaw {
		b = y.Decode()
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
