// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fields computes which fields of an object a write adds, changes and removes,
// merges configurations into objects, and keeps sets of fields in the encoding of
// metadata.managedFields. Updates and applies use it to avoid the merge library: it works on
// canonical text, of custom objects and of Go values alike, and parses little that does not
// differ.
//
// A [Type] defines which maps and lists are atomic and which have fields of their own.
// A [Tree] is a set of fields, or the changes of a write. [SetOf], [Merge] and [Drop] are what
// an apply does to an object: the fields that its configuration sets, their values, and the end
// of those that it no longer sets.
//
// All functions may return false, and do so whenever the merge library could come to
// another result: the caller then uses the library.
package fields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/steer-dev/steer/internal/jsontext"
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
	keys        []key
	fields      map[string]declaration
	rest, items *Type
}

// declaration is a field that a type declares.
type declaration struct {
	label string
	of    *Type
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
		n.fields = make(map[string]declaration, len(m.Fields))
		for i := range m.Fields {
			n.fields[m.Fields[i].Name] = declaration{"f:" + m.Fields[i].Name, compile(s, m.Fields[i].Type, known)}
		}
		if m.ElementType != (schema.TypeRef{}) {
			n.rest = compile(s, m.ElementType, known)
		}
	}
	if l := atom.List; l != nil {
		n.list, n.wholeList = true, l.ElementRelationship == schema.Atomic
		n.associative = l.ElementRelationship == schema.Associative
		n.items = compile(s, l.ElementType, known)
		for _, name := range slices.Sorted(slices.Values(l.Keys)) {
			n.keys = append(n.keys, key{name: name, otherwise: defaultOf(s, l.ElementType, name)})
		}
	}
	return n
}

// defaultOf returns the default of a key of an element, as labels have it; "" if there is none
// that is certain.
func defaultOf(s *schema.Schema, element schema.TypeRef, name string) string {
	atom, ok := s.Resolve(element)
	if !ok || atom.Map == nil {
		return ""
	}
	field, _ := atom.Map.FindField(name)
	if text, ok := field.Default.(string); ok && jsontext.PlainText(text) {
		return quote + text + quote
	}
	return ""
}

// Field returns the type of a field; nil if there is none.
func (n *Type) Field(name string) *Type {
	if f, ok := n.fields[name]; ok {
		return f.of
	}
	return n.rest
}

// field returns the label of a field, and its type; declared reports whether the type has it
// itself.
func (n *Type) field(name string) (label string, of *Type, declared bool) {
	if f, ok := n.fields[name]; ok {
		return f.label, f.of, true
	}
	return "f:" + name, n.rest, false
}

// Objects reports whether values may be objects, and whether these are atomic.
func (n *Type) Objects() (may, atomic bool) { return n.object, n.wholeObject }

// Lists reports whether values may be lists, whether these are atomic, and whether elements
// have owners of their own.
func (n *Type) Lists() (may, atomic, associative bool) { return n.list, n.wholeList, n.associative }

// Keys are the names of the keys of elements, in order.
func (n *Type) Keys() []string {
	out := make([]string, len(n.keys))
	for i := range n.keys {
		out[i] = n.keys[i].name
	}
	return out
}

// Items is the type of elements, Rest that of members that the type does not declare; nil if
// it has none.
func (n *Type) Items() *Type { return n.items }

// Rest is explained at Items.
func (n *Type) Rest() *Type { return n.rest }

// Declares reports whether the type has fields of its own.
func (n *Type) Declares() bool { return len(n.fields) > 0 }

// Nullable reports whether null is one JSON type with all other values.
func (n *Type) Nullable() bool { return n.sole() != otherType }

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
