// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"slices"
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// node is one type of a schema, in the form in which shapes are taken.
type node struct {
	scalar schema.Scalar // empty: values are no scalars
	// object is set where values may be objects, list where they may be lists.
	object, list           bool
	wholeObject, wholeList bool // they have one owner altogether: atomic
	// associative lists have elements with owners of their own, which keys name,
	// in order, or else they themselves.
	associative bool
	keys        []string
	fields      map[string]*node
	rest, items *node
}

// compile turns a type, and all that it refers to, into nodes; nil for a type
// that the schema does not have. known holds the named types done so far, which
// may refer to themselves.
func compile(s *schema.Schema, ref schema.TypeRef, known map[string]*node) *node {
	name := ""
	if ref.NamedType != nil {
		name = *ref.NamedType
		if ref.ElementRelationship != nil {
			name += " " + string(*ref.ElementRelationship)
		}
		if n := known[name]; n != nil {
			return n
		}
	}
	atom, ok := s.Resolve(ref)
	if !ok {
		return nil
	}
	n := &node{}
	if name != "" {
		known[name] = n
	}
	if atom.Scalar != nil {
		n.scalar = *atom.Scalar
	}
	if m := atom.Map; m != nil {
		n.object, n.wholeObject = true, m.ElementRelationship == schema.Atomic
		n.fields = make(map[string]*node, len(m.Fields))
		for i := range m.Fields {
			n.fields[m.Fields[i].Name] = compile(s, m.Fields[i].Type, known)
		}
		if m.ElementType != (schema.TypeRef{}) {
			n.rest = compile(s, m.ElementType, known)
		}
	}
	if l := atom.List; l != nil {
		n.list, n.wholeList = true, l.ElementRelationship == schema.Atomic
		n.associative = l.ElementRelationship == schema.Associative
		n.keys = slices.Sorted(slices.Values(l.Keys))
		n.items = compile(s, l.ElementType, known)
	}
	return n
}

// field returns the type of a field; nil when it has none.
func (n *node) field(name string) *node {
	if f, ok := n.fields[name]; ok {
		return f
	}
	return n.rest
}

// holds tells whether a scalar is of the type.
func (n *node) holds(value any) bool {
	switch value.(type) {
	case string:
		return n.scalar == schema.String || n.scalar == schema.Untyped
	case bool:
		return n.scalar == schema.Boolean || n.scalar == schema.Untyped
	case int64:
		return n.scalar == schema.Numeric || n.scalar == schema.Untyped
	}
	return false
}

// fits tells whether a value certainly has the type, and contains nothing whose
// identity depends on values.
func (n *node) fits(value any) bool {
	if n == nil {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		if v == nil || !n.object {
			return false
		}
		for name, member := range v {
			if !n.field(name).fits(member) {
				return false
			}
		}
		return true
	case []any:
		if v == nil || !n.list || !n.wholeList {
			return false
		}
		for _, item := range v {
			if !n.items.fits(item) {
				return false
			}
		}
		return true
	}
	return n.holds(value)
}

// maxShape bounds a shape, in bytes.
const maxShape = 4 << 10

// shape is everything about two values that field ownership depends on: which
// fields there are on either side, and which of them differ, but of values only
// where they name elements of lists.
//
// Two pairs of values with one shape, in the same type, have the same sets of
// added, removed and modified fields.
type shape struct{ bytes []byte }

// side of a pair on which a value is.
type side byte

const (
	left  side = '-'
	right side = '+'
	both  side = '='
)

// add appends the shape of a pair, of which one may be missing. false means that
// the pair has something about it that shapes do not tell.
func (s *shape) add(n *node, where side, a, b any) bool {
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

// other returns the second of a pair in the type of the first, which it is when
// there is no second.
func other[T map[string]any | []any](where side, first T, second any) (T, bool) {
	if where != both {
		return first, first != nil
	}
	out, ok := second.(T)
	return out, ok && first != nil && out != nil
}

func (s *shape) equality(equal bool) bool {
	mark := byte('!')
	if equal {
		mark = '~'
	}
	s.bytes = append(s.bytes, mark)
	return true
}

// whole appends the shape of values that have one owner altogether.
func (s *shape) whole(n *node, where side, sizeA, sizeB int, a, b any) bool {
	if !n.fits(a) || where == both && !n.fits(b) {
		return false
	}
	s.bytes = append(s.bytes, '*')
	s.equality(sizeA == 0)
	s.equality(sizeB == 0)
	if where == both {
		return s.equality(equal(a, b))
	}
	return true
}

func (s *shape) fields(n *node, where side, a, b map[string]any) bool {
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

// elements appends lists whose elements have owners of their own: their values
// name them, so they are part of the shape as they are.
func (s *shape) elements(items *node, a, b []any) bool {
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

// onlyExact tells whether a value contains neither nulls nor fractions, which
// may be equal to something that looks different.
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
