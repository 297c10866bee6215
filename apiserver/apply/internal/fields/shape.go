// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// maxShape bounds a shape, in bytes.
const maxShape = 4 << 10

// Shape is everything about two values that field ownership depends on: which fields
// exist on either side, and which of them differ; values are included only where they
// identify elements of lists.
//
// Two pairs of values of one type with equal shapes have the same sets of added,
// removed and modified fields.
type Shape struct{ bytes []byte }

// NewShape returns an empty shape.
func NewShape() *Shape { return &Shape{bytes: make([]byte, 0, 256)} }

// side of a pair on which a value exists.
type side byte

const (
	left  side = '-'
	right side = '+'
	both  side = '='
)

// AddFlag appends a flag that the outcome depends on.
func (s *Shape) AddFlag(set bool) { s.equality(set) }

// AddText appends a text that the outcome depends on.
func (s *Shape) AddText(text string) {
	s.bytes = append(append(s.bytes, text...), 0)
}

// AddValue appends the shape of one value. false means that the value has something
// that shapes do not capture.
func (s *Shape) AddValue(n *Type, value any) bool { return s.add(n, right, nil, value) }

// AddPair appends the shape of a change; false as for AddValue.
func (s *Shape) AddPair(n *Type, before, after any) bool { return s.add(n, both, before, after) }

// Bytes returns the encoding of the shape; equal shapes have equal bytes.
func (s *Shape) Bytes() []byte { return s.bytes }

// add appends the shape of a pair, of which one may be absent; false as for AddValue.
func (s *Shape) add(n *Type, where side, a, b any) bool {
	if n == nil || len(s.bytes) > maxShape {
		return false
	}
	present := a
	if where == right {
		present = b
	}
	s.bytes = append(s.bytes, byte(where))
	switch v := present.(type) {
	case map[string]any:
		w, same := other(where, v, b)
		if !same || !n.object {
			return false
		}
		if n.wholeObject {
			return s.whole(n, where, len(v), len(w), v, w)
		}
		return s.fields(n, where, v, w)
	case []any:
		w, same := other(where, v, b)
		if !same || !n.list {
			return false
		}
		if n.wholeList {
			return s.whole(n, where, len(v), len(w), v, w)
		}
		return s.elements(n.items, v, w)
	}
	if !n.holds(present) || where == both && !n.holds(b) {
		return false
	}
	if where == both {
		return s.equality(present == b)
	}
	return true
}

// other returns the second of a pair as the type of the first; its zero value if there
// is no second.
func other[T map[string]any | []any](where side, first T, second any) (T, bool) {
	if where != both {
		return first, first != nil
	}
	out, ok := second.(T)
	return out, ok && first != nil && out != nil
}

func (s *Shape) equality(equal bool) bool {
	mark := byte('!')
	if equal {
		mark = '~'
	}
	s.bytes = append(s.bytes, mark)
	return true
}

// whole appends the shape of atomic values.
func (s *Shape) whole(n *Type, where side, sizeA, sizeB int, a, b any) bool {
	if !n.fits(a) || where == both && !n.fits(b) {
		return false
	}
	s.bytes = append(s.bytes, '*')
	s.equality(sizeA == 0)
	s.equality(sizeB == 0)
	if where == both {
		return s.equality(wire.Equal(a, b))
	}
	return true
}

func (s *Shape) fields(n *Type, where side, a, b map[string]any) bool {
	var few [32]string
	names := few[:0]
	for name := range a {
		names = append(names, name)
	}
	if where == both {
		for name := range b {
			if _, known := a[name]; !known {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	s.bytes = append(s.bytes, '{')
	for _, name := range names {
		s.bytes = strconv.AppendInt(s.bytes, int64(len(name)), 10)
		s.bytes = append(s.bytes, ':')
		s.bytes = append(s.bytes, name...)
		valueA, inA := a[name]
		valueB, inB := b[name]
		at := where
		if where == both {
			switch {
			case !inA:
				at = right
			case !inB:
				at = left
			}
		}
		if !s.add(n.field(name), at, valueA, valueB) {
			return false
		}
	}
	s.bytes = append(s.bytes, '}')
	return true
}

// elements appends lists of type set: their values identify them and are part of the
// shape.
func (s *Shape) elements(items *Type, a, b []any) bool {
	if !onlyExact(a) || !onlyExact(b) {
		return false
	}
	for _, list := range [][]any{a, b} {
		raw, err := json.Marshal(list)
		if err != nil || len(raw) > maxShape {
			return false
		}
		s.bytes = strconv.AppendInt(s.bytes, int64(len(raw)), 10)
		s.bytes = append(s.bytes, ':')
		s.bytes = append(s.bytes, raw...)
	}
	return items != nil
}

// onlyExact reports whether a value contains neither nulls nor fractions, which may be
// equal to a value with another spelling.
func onlyExact(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if !onlyExact(member) {
				return false
			}
		}
		return v != nil
	case []any:
		for _, item := range v {
			if !onlyExact(item) {
				return false
			}
		}
		return v != nil
	case string, bool, int64:
		return true
	}
	return false
}
