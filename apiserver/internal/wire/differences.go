// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// Differences copies two maps without the members that are equal in both. The copies
// have no raw members.
func Differences(a, b map[string]any) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	for key, valueB := range b {
		valueA, both := a[key]
		switch {
		case !both:
			outB[key] = DecodeValue(valueB)
		case !Equal(valueA, valueB):
			outA[key], outB[key] = differing(valueA, valueB)
		}
	}
	for key, valueA := range a {
		if _, both := b[key]; !both {
			outA[key] = DecodeValue(valueA)
		}
	}
	return outA, outB
}

// differing removes the equal parts of two values that are known to differ. Lists stay
// whole: the library matches their elements.
func differing(a, b any) (any, any) {
	if x, ok := a.(RawValue); ok && x.IsObject() {
		if y, ok := b.(RawValue); ok && y.IsObject() {
			return pair(rawDifferences(x, y))
		}
	}
	a, b = DecodeValue(a), DecodeValue(b)
	if a, ok := a.(map[string]any); ok {
		if b, ok := b.(map[string]any); ok {
			return pair(Differences(a, b))
		}
	}
	return a, b
}

// rawDifferences is [Differences] for raw objects.
func rawDifferences(a, b RawValue) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	EachMember(a, b, func(name string, x, y RawValue) bool {
		switch {
		case y == "":
			outA[name] = x.Decode()
		case x == "":
			outB[name] = y.Decode()
		case x != y:
			outA[name], outB[name] = differing(x, y)
		}
		return true
	})
	return outA, outB
}

func pair(a, b map[string]any) (any, any) { return a, b }

// EachMember calls do with the members of two raw objects, in order, until it returns
// false. Objects and members that are absent are "".
func EachMember(a, b RawValue, do func(name string, a, b RawValue) bool) bool {
	left, right := membersOf(a), membersOf(b)
	for left.here || right.here {
		var x, y RawValue
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

// members iterates over the members of a raw object.
type members struct {
	reader RawReader
	here   bool
	name   string
	value  RawValue
}

func membersOf(object RawValue) members {
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

// DecodeValue decodes a value if it is raw, and returns it unchanged otherwise.
func DecodeValue(value any) any {
	if raw, ok := value.(RawValue); ok {
		return raw.Decode()
	}
	return value
}
