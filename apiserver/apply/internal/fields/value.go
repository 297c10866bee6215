// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import "github.com/steer-dev/steer/apiserver/internal/wire"

// Differences copies two maps without the members that are equal in both. Nothing in the
// copies is frozen.
func Differences(a, b map[string]any) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	for key, valueB := range b {
		valueA, both := a[key]
		switch {
		case !both:
			outB[key] = thawed(valueB)
		case !wire.Equal(valueA, valueB):
			outA[key], outB[key] = differing(valueA, valueB)
		}
	}
	for key, valueA := range a {
		if _, both := b[key]; !both {
			outA[key] = thawed(valueA)
		}
	}
	return outA, outB
}

// differing trims two values that are known to differ. Lists stay whole: which
// of their elements belong together, or come twice, is for the library to find.
func differing(a, b any) (any, any) {
	if x, y, ok := frozenPair(both, a, b); ok && x.IsObject() && y.IsObject() {
		return pair(frozenDifferences(x, y))
	}
	a, b = thawed(a), thawed(b)
	if a, ok := a.(map[string]any); ok {
		if b, ok := b.(map[string]any); ok {
			return pair(Differences(a, b))
		}
	}
	return a, b
}

// frozenDifferences is [Differences] of frozen objects.
func frozenDifferences(a, b wire.Frozen) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	eachMember(a, b, func(name string, x, y wire.Frozen) bool {
		switch {
		case y == "":
			outA[name] = x.Thaw()
		case x == "":
			outB[name] = y.Thaw()
		case x != y:
			outA[name], outB[name] = differing(x, y)
		}
		return true
	})
	return outA, outB
}

func pair(a, b map[string]any) (any, any) { return a, b }
