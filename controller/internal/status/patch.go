// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import "reflect"

func without(m map[string]any, field string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != field {
			out[k] = v
		}
	}
	return out
}

// MergePatch is the JSON merge patch that leads from one object to another.
func MergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for k := range from {
		if _, ok := to[k]; !ok {
			patch[k] = nil
		}
	}
	for k, now := range to {
		was, ok := from[k]
		wasMap, ok1 := was.(map[string]any)
		nowMap, ok2 := now.(map[string]any)
		switch {
		case ok1 && ok2:
			if sub := MergePatch(wasMap, nowMap); len(sub) > 0 {
				patch[k] = sub
			}
		case !ok || !reflect.DeepEqual(was, now):
			patch[k] = now
		}
	}
	return patch
}

// ApplyMergePatch returns what a merge patch makes of an object, which stays as
// it is.
func ApplyMergePatch(object, patch map[string]any) map[string]any {
	out := without(object, "")
	for k, change := range patch {
		sub, isMap := change.(map[string]any)
		switch {
		case change == nil:
			delete(out, k)
		case isMap:
			was, _ := out[k].(map[string]any)
			out[k] = ApplyMergePatch(was, sub)
		default:
			out[k] = change
		}
	}
	return out
}
