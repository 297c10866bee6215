// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

// TextMerge writes an object with some of its members changed, in the order of their
// names. All others are copied.
type TextMerge struct {
	// Doc reads the object that is changed.
	Doc Reader
	out []byte
}

// NewTextMerge returns a merge into an object.
func NewTextMerge(object Text) *TextMerge {
	return &TextMerge{Doc: object.Reader(), out: make([]byte, 0, len(object)+128)}
}

// Object writes the object that Doc is positioned at, with sorted names changed: missing
// is called for those that the object does not have, present for those that it has, with Doc
// at the value, which it consumes. Both write the member with [TextMerge.Put], or with
// [TextMerge.Begin] and Object, or leave it out. begin is passed on to those. Object is false as
// soon as one of them is.
func (m *TextMerge) Object(names []string, missing, present func(begin int, name string) bool) bool {
	m.out = append(m.out, '{')
	begin := len(m.out)
	for {
		name, more := m.Doc.Member()
		for len(names) > 0 && (!more || names[0] < name) {
			if !missing(begin, names[0]) {
				return false
			}
			names = names[1:]
		}
		if !more {
			m.out = append(m.out, '}')
			return true
		}
		if len(names) == 0 || names[0] != name {
			m.Begin(begin, name)
			m.out = append(m.out, m.Doc.Take()...)
			continue
		}
		names = names[1:]
		if !present(begin, name) {
			return false
		}
	}
}

// Begin writes the name of a member, whose value follows.
func (m *TextMerge) Begin(begin int, name string) { m.out = AppendName(m.out, begin, name) }

// Put writes a member. It is false if the value has no canonical form.
func (m *TextMerge) Put(begin int, name string, value any) bool {
	raw, ok := EncodeValue(value)
	m.Begin(begin, name)
	m.out = append(m.out, raw...)
	return ok
}

// Value returns the object that was written.
func (m *TextMerge) Value() Text {
	return View(m.out)
}
