// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import "iter"

// Member returns the value of a member of a JSON object as it is written, or
// nil. The object must be valid JSON in the form that the server stores: UTF-8,
// without space between its parts.
//
//steer:fast members
func Member(object []byte, name string) []byte {
	m := membersOf(object)
	if !m.find(name) {
		return nil
	}
	return m.value()
}

// members reads an object, one member after the other.
type members struct {
	text []byte
	// name is that of the current member, at is where its value begins, and then
	// where it ends.
	name []byte
	at   int
	read bool // the value, up to at
}

// membersOf begins to read the object that text begins with.
func membersOf(text []byte) members {
	if len(text) == 0 || text[0] != '{' {
		return members{}
	}
	return members{text: text, read: true}
}

// next goes on to the next member, if there is one.
func (m *members) next() bool {
	if !m.read {
		m.value()
	}
	if m.at >= len(m.text) || m.at > 0 && m.text[m.at] != ',' {
		return false
	}
	begin := m.at + 1
	if begin >= len(m.text) || m.text[begin] != '"' {
		return false
	}
	end := skip(m.text, begin)
	if end >= len(m.text) || m.text[end] != ':' {
		return false
	}
	m.name, m.at, m.read = m.text[begin+1:end-1], end+1, false
	return true
}

// value returns the value of the current member. It is called once at most.
func (m *members) value() []byte {
	begin := m.at
	m.at, m.read = skip(m.text, begin), true
	return m.text[begin:m.at]
}

// inside returns what the value of the current member consists of.
func (m *members) inside() members { return membersOf(m.text[m.at:]) }

// find goes on to the member of that name, if there is one.
func (m *members) find(name string) bool {
	for m.next() {
		if string(m.name) == name {
			return true
		}
	}
	return false
}

// Elements yields the elements of a JSON array in the same form.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(array) == 0 || array[0] != '[' {
			return
		}
		for i := 1; i < len(array) && array[i] != ']'; {
			end := skip(array, i)
			if !yield(array[i:end]) || end >= len(array) || array[end] != ',' {
				return
			}
			i = end + 1
		}
	}
}

// skip returns where the JSON value that begins at i ends.
func skip(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			i = quoted(text, i)
		case c|0x20 == '{': // or [
			depth++
			continue
		case c|0x20 == '}': // or ]
			if depth == 0 {
				return i // the end of what the value stands in
			}
			depth--
		case depth > 0:
			continue
		case c == ',' || c == ':':
			return i
		default:
			continue
		}
		if depth == 0 {
			return min(i+1, len(text))
		}
	}
	return len(text)
}

// quoted returns where the string ends that begins at i.
func quoted(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return i
}
