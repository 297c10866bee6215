// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// Differences copies two maps without the members that are equal in both. Nothing in the
// copies is frozen.
func Differences(a, b map[string]any) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	for key, valueB := range b {
		valueA, both := a[key]
		switch {
		case !both:
			outB[key] = ThawValue(valueB)
		case !Equal(valueA, valueB):
			outA[key], outB[key] = differing(valueA, valueB)
		}
	}
	for key, valueA := range a {
		if _, both := b[key]; !both {
			outA[key] = ThawValue(valueA)
		}
	}
	return outA, outB
}

// differing trims two values that are known to differ. Lists stay whole: which
// of their elements belong together, or come twice, is for the library to find.
func differing(a, b any) (any, any) {
	if x, ok := a.(Frozen); ok && x.IsObject() {
		if y, ok := b.(Frozen); ok && y.IsObject() {
			return pair(frozenDifferences(x, y))
		}
	}
	a, b = ThawValue(a), ThawValue(b)
	if a, ok := a.(map[string]any); ok {
		if b, ok := b.(map[string]any); ok {
			return pair(Differences(a, b))
		}
	}
	return a, b
}

// frozenDifferences is [Differences] of frozen objects.
func frozenDifferences(a, b Frozen) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	EachMember(a, b, func(name string, x, y Frozen) bool {
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

// EachMember goes through the members of two frozen objects in order, until it is told to
// stop. Objects, and values, that are not there are empty.
func EachMember(a, b Frozen, do func(name string, a, b Frozen) bool) bool {
	left, right := membersOf(a), membersOf(b)
	for left.here || right.here {
		var x, y Frozen
		name := left.name
		if !left.here || right.here && right.name < name {
			name = right.name
		}
		if left.here && left.name == name {
			x = left.value
		}
		if right.here && right.name == name {
			y = right.value
		}
		if x != "" {
			left.next()
		}
		if y != "" {
			right.next()
		}
		if !do(name, x, y) {
			return false
		}
	}
	return true
}

// members walks over the members of a frozen object.
type members struct {
	reader Reader
	here   bool
	name   string
	value  Frozen
}

func membersOf(object Frozen) members {
	m := members{reader: object.Reader()}
	if object != "" {
		m.next()
	}
	return m
}

func (m *members) next() {
	if m.name, m.here = m.reader.Member(); m.here {
		m.value = m.reader.Take()
	}
}

// ThawValue decodes a value if it is frozen.
func ThawValue(value any) any {
	if frozen, ok := value.(Frozen); ok {
		return frozen.Thaw()
	}
	return value
}
