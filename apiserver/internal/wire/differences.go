// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// Differences copies two maps without the members that are equal in both.
func Differences(a, b map[string]any) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	for key, valueB := range b {
		valueA, both := a[key]
		switch {
		case !both:
			outB[key] = valueB
		case !Equal(valueA, valueB):
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

// differing removes the equal parts of two values that are known to differ. Lists stay
// whole: the library matches their elements.
func differing(a, b any) (any, any) {
	if a, ok := a.(map[string]any); ok {
		if b, ok := b.(map[string]any); ok {
			return pair(Differences(a, b))
		}
	}
	return a, b
}

// TextDifferences is [Differences] for objects as text.
func TextDifferences(a, b Text) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	EachMember(a, b, func(name string, x, y Text) bool {
		switch {
		case x == y:
		case x.IsObject() && y.IsObject():
			outA[name], outB[name] = pair(TextDifferences(x, y))
		default:
			if x != "" {
				outA[name] = x.Decode()
			}
			if y != "" {
				outB[name] = y.Decode()
			}
		}
		return true
	})
	return outA, outB
}

func pair(a, b map[string]any) (any, any) { return a, b }

// EachMember calls do with the members of two raw objects, in order, until it returns
// false. Objects and members that are absent are "".
func EachMember(a, b Text, do func(name string, a, b Text) bool) bool {
	left, right := membersOf(a), membersOf(b)
	for left.here || right.here {
		var x, y Text
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
	reader Reader
	here   bool
	name   string
	value  Text
}

func membersOf(object Text) members {
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
	if raw, ok := value.(Text); ok {
		return raw.Decode()
	}
	return value
}
