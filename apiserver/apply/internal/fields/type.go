// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fields works out which fields of an object a write adds, changes and
// removes, and keeps sets of fields in the form in which metadata.managedFields
// has them. It is what updates and applies cost when they go the short way: no
// schema is walked again and nothing is parsed that does not differ.
//
// A [Type] says which maps and lists are one field and which have fields of their
// own. A [Tree] is a set of fields, or what a write does to those of an object. A
// [Shape] is all of a change that ownership depends on.
//
// Everything here may answer that it cannot tell (false), and does so whenever
// the merge library could come to another result: the caller asks that then.
package fields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// Type is one type of a schema. It is never changed.
type Type struct {
	scalar schema.Scalar // empty: values are no scalars
	// object is set where values may be objects, list where they may be lists.
	object, list           bool
	wholeObject, wholeList bool // they have one owner altogether: atomic
	// associative lists have elements with owners of their own, which keys name,
	// in order, or else they themselves.
	associative bool
	keys        []string
	fields      map[string]*Type
	rest, items *Type
}

// Compile takes a type, and all that it refers to, out of a schema; nil for a type
// that the schema does not have.
func Compile(s *schema.Schema, ref schema.TypeRef) *Type {
	return compile(s, ref, map[string]*Type{})
}

// compile is Compile with the named types done so far, which may refer to
// themselves.
func compile(s *schema.Schema, ref schema.TypeRef, known map[string]*Type) *Type {
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
	n := &Type{}
	if name != "" {
		known[name] = n
	}
	if atom.Scalar != nil {
		n.scalar = *atom.Scalar
	}
	if m := atom.Map; m != nil {
		n.object, n.wholeObject = true, m.ElementRelationship == schema.Atomic
		n.fields = make(map[string]*Type, len(m.Fields))
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
func (n *Type) field(name string) *Type {
	if f, ok := n.fields[name]; ok {
		return f
	}
	return n.rest
}

// holds reports whether a scalar is of the type.
func (n *Type) holds(value any) bool {
	switch value := value.(type) {
	case string:
		return n.scalar == schema.String || n.scalar == schema.Untyped
	case bool:
		return n.scalar == schema.Boolean || n.scalar == schema.Untyped
	case int64:
		return n.scalar == schema.Numeric || n.scalar == schema.Untyped
	case wire.Frozen:
		return n.holdsFrozen(value)
	}
	return false
}

// fits reports whether a value certainly has the type, and contains nothing whose
// identity depends on values.
func (n *Type) fits(value any) bool {
	if n == nil {
		return false
	}
	switch v := value.(type) {
	case wire.Frozen:
		return n.fitsFrozen(v)
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

// sole returns the form that all values of a type have but null; otherForm if
// there are several.
func (n *Type) sole() form {
	switch {
	case n.object && !n.list && n.scalar == "":
		return objectForm
	case n.list && !n.object && n.scalar == "":
		return listForm
	case n.scalar != "" && !n.object && !n.list:
		return scalarForm
	}
	return otherForm
}
