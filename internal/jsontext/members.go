// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

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
