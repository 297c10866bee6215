// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import "github.com/steer-dev/steer/apiserver/internal/wire"

// Differences copies two maps without the members that are equal in both.
func Differences(a, b map[string]any) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	for key, valueB := range b {
		valueA, both := a[key]
		switch {
		case !both:
			outB[key] = valueB
		case !wire.Equal(valueA, valueB):
			outA[key], outB[key] = differing(valueA, valueB)
		}
	}
	for key, valueA := range a {
		if _, both := b[key]; !both {
			outA[key] = valueA
		}
	}
	return outA, outB
}

// differing trims two values that are known to differ. Lists stay whole: which
// of their elements belong together, or come twice, is for the library to find.
func differing(a, b any) (any, any) {
	if a, ok := a.(map[string]any); ok {
		if b, ok := b.(map[string]any); ok {
			return pair(Differences(a, b))
		}
	}
	return a, b
}

func pair(a, b map[string]any) (any, any) { return a, b }
