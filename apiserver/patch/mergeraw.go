// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"slices"
	"unsafe"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// mergeRaw is [merge] for a raw member. ok is false if the member must be decoded.
func mergeRaw(current wire.RawValue, value any) (merged any, ok bool) {
	patch, isObject := value.(map[string]any)
	if !isObject || !current.IsObject() {
		return nil, false
	}
	m := merging{doc: current.Reader(), out: make([]byte, 0, len(current)+64)}
	if !m.object(patch) {
		return nil, false
	}
	return wire.RawValue(unsafe.String(unsafe.SliceData(m.out), len(m.out))), true
}

// merging writes the result of a merge patch on a raw document.
type merging struct {
	doc wire.RawReader
	out []byte
}

// object merges the object that the reader is positioned at.
func (m *merging) object(patch map[string]any) bool {
	var few [16]string
	names := few[:0]
	for name := range patch {
		names = append(names, name)
	}
	slices.Sort(names)
	m.out = append(m.out, '{')
	begin := len(m.out)
	for {
		name, more := m.doc.Member()
		for len(names) > 0 && (!more || names[0] < name) {
			if !m.put(begin, names[0], withoutNulls(patch[names[0]])) {
				return false
			}
			names = names[1:]
		}
		if !more {
			break
		}
		if len(names) == 0 || names[0] != name {
			m.out = wire.AppendName(m.out, begin, name)
			m.out = append(m.out, m.doc.Take()...)
			continue
		}
		names = names[1:]
		if !m.member(begin, name, patch[name]) {
			return false
		}
	}
	m.out = append(m.out, '}')
	return true
}

// member merges a member that both have.
func (m *merging) member(begin int, name string, value any) bool {
	isObject := m.doc.Kind() == '{'
	inner, merges := value.(map[string]any)
	switch {
	case isObject && merges:
		m.out = wire.AppendName(m.out, begin, name)
		return m.object(inner)
	case !isObject:
		value = withoutNulls(value)
	}
	m.doc.Skip()
	return m.put(begin, name, value)
}

// put writes a member unless it is null.
func (m *merging) put(begin int, name string, value any) bool {
	if value == nil {
		return true
	}
	raw, ok := wire.EncodeValue(value)
	m.out = append(wire.AppendName(m.out, begin, name), raw...)
	return ok
}
