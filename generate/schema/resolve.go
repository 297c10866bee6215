// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"slices"
)

// Resolver replaces references by what they mean: what stands at the place of use
// is kept beside it, as an allOf.
type Resolver struct {
	// SchemaOf returns the schema of a type as it is read.
	SchemaOf func(Ref) *Schema
	// Cyclic, if set, is told of a reference from inside the type that it names.
	Cyclic func(use *Schema)

	done map[Ref]*Schema
	open []Ref // the types that are being resolved
}

// Root resolves the schema of a type that is itself a root.
func (r *Resolver) Root(ref Ref) *Schema {
	if s := r.done[ref]; s != nil {
		return s
	}
	if r.done == nil {
		r.done = map[Ref]*Schema{}
	}
	s := r.tree(r.SchemaOf(ref))
	r.done[ref] = s
	return s
}

// tree resolves everything below a schema. A type that contains itself ends in a
// schema that allows anything.
func (r *Resolver) tree(s *Schema) *Schema {
	if s.Ref != nil {
		return r.ref(s)
	}
	if s.Items == nil && s.Additional == nil && len(s.Properties)+len(s.AllOf) == 0 {
		return s
	}
	out := s.Copy()
	if s.Items != nil {
		out.Items = r.tree(s.Items)
	}
	if s.Additional != nil {
		out.Additional = r.tree(s.Additional)
	}
	if len(s.AllOf) > 0 {
		out.AllOf = make([]*Schema, len(s.AllOf))
		for i, part := range s.AllOf {
			out.AllOf[i] = r.tree(part)
		}
	}
	if len(s.Properties) > 0 {
		out.Properties = make(map[string]*Schema, len(s.Properties))
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			out.Properties[name] = r.tree(s.Properties[name])
		}
	}
	return out
}

// ref joins the schema of the type with what the place of use adds: validation
// from both sides holds, documentation of the place of use wins.
func (r *Resolver) ref(use *Schema) *Schema {
	of, known := r.done[*use.Ref]
	if !known {
		r.done[*use.Ref] = &Schema{}
		r.open = append(r.open, *use.Ref)
		of = r.tree(r.SchemaOf(*use.Ref))
		r.open = r.open[:len(r.open)-1]
		r.done[*use.Ref] = of
	} else if r.Cyclic != nil && !use.PreserveUnknown && slices.Contains(r.open, *use.Ref) {
		r.Cyclic(use)
	}
	own := use.Copy()
	own.Ref, own.Description, own.Title, own.ExternalDocs, own.Example = nil, "", "", nil, nil
	joined := &Schema{
		AllOf:        []*Schema{of, own},
		Description:  of.Description,
		Title:        of.Title,
		ExternalDocs: of.ExternalDocs,
		Example:      of.Example,
		Pos:          use.Pos,
	}
	if use.Description != "" {
		joined.Description = use.Description
	}
	if use.Title != "" {
		joined.Title = use.Title
	}
	if use.ExternalDocs != nil {
		joined.ExternalDocs = use.ExternalDocs
	}
	if use.Example != nil {
		joined.Example = use.Example
	}
	return joined
}
