// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fields computes which fields of an object a write adds, changes and removes,
// and keeps sets of fields in the encoding of metadata.managedFields. Updates and
// applies use it to avoid the merge library: it walks no schema twice and parses
// nothing that does not differ.
//
// A [Type] defines which maps and lists are atomic and which have fields of their own.
// A [Tree] is a set of fields, or the changes of a write. A [Shape] is everything about
// a change that ownership depends on.
//
// All functions may return false, and do so whenever the merge library could come to
// another result: the caller then uses the library.
package fields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// Type is one type of a schema. It is immutable.
type Type struct {
	scalar schema.Scalar // empty: values are not scalars
	// object is set if values may be objects, list if they may be lists.
	object, list           bool
	wholeObject, wholeList bool // atomic
	// associative lists have elements with owners of their own, identified by keys, in
	// order, or else by their values.
	associative bool
	keys        []string
	fields      map[string]*Type
	rest, items *Type
}

// Compile compiles a type of a schema and the types that it refers to; nil if the
// schema does not have it.
func Compile(s *schema.Schema, ref schema.TypeRef) *Type {
	return compile(s, ref, map[string]*Type{})
}

// compile is Compile with the named types that are compiled already, because types may
// be recursive.
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

// field returns the type of a field; nil if there is none.
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
	case wire.RawValue:
		return n.holdsRaw(value)
	}
	return false
}

// fits reports whether a value certainly has the type and contains nothing whose label
// depends on values.
func (n *Type) fits(value any) bool {
	if n == nil {
		return false
	}
	switch v := value.(type) {
	case wire.RawValue:
		return n.fitsRaw(v)
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

// sole returns the JSON type of all values of a type other than null; otherType if
// there are several.
func (n *Type) sole() jsonType {
	switch {
	case n.object && !n.list && n.scalar == "":
		return objectForm
	case n.list && !n.object && n.scalar == "":
		return listForm
	case n.scalar != "" && !n.object && !n.list:
		return scalarForm
	}
	return otherType
}
