// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"maps"
	"slices"

	"github.com/steer-dev/steer/generate/yaml"
)

// resolver replaces references by what they mean.
type resolver struct {
	schemaOf func(Ref) *Schema
	done     map[Ref]*Schema
	// cyclic, if set, is told of a reference from inside the type that it names.
	cyclic func(use *Schema)
	open   []Ref // the types that are being resolved
}

// root resolves the schema of a type that is itself a root.
func (r *resolver) root(ref Ref) *Schema {
	if s := r.done[ref]; s != nil {
		return s
	}
	s := r.tree(r.schemaOf(ref))
	r.done[ref] = s
	return s
}

// tree resolves everything below a schema. A type that contains itself ends in a
// schema that allows anything.
func (r *resolver) tree(s *Schema) *Schema {
	if s.Ref != nil {
		return r.ref(s)
	}
	if s.Items == nil && s.Additional == nil && len(s.Properties)+len(s.AllOf) == 0 {
		return s
	}
	out := s.copy()
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
func (r *resolver) ref(use *Schema) *Schema {
	of, known := r.done[*use.Ref]
	if !known {
		r.done[*use.Ref] = &Schema{}
		r.open = append(r.open, *use.Ref)
		of = r.tree(r.schemaOf(*use.Ref))
		r.open = r.open[:len(r.open)-1]
		r.done[*use.Ref] = of
	} else if r.cyclic != nil && !use.PreserveUnknown && slices.Contains(r.open, *use.Ref) {
		r.cyclic(use)
	}
	own := use.copy()
	own.Ref, own.Description, own.Title, own.ExternalDocs, own.Example = nil, "", "", nil, nil
	joined := &Schema{
		AllOf:        []*Schema{of, own},
		Description:  of.Description,
		Title:        of.Title,
		ExternalDocs: of.ExternalDocs,
		Example:      of.Example,
		pos:          use.pos,
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

// flattener merges every allOf into the schema that has it.
type flattener struct {
	done     map[*Schema]*Schema
	conflict func(at *Schema, a, b string)
}

func (f *flattener) schema(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	if out := f.done[s]; out != nil {
		return out
	}
	out := s.copy()
	out.AllOf = nil
	if len(s.AllOf) > 0 {
		out.Properties = maps.Clone(s.Properties)
	}
	f.done[s] = out
	for _, part := range s.AllOf {
		f.merge(out, part)
	}
	out.Items = f.schema(out.Items)
	out.Additional = f.schema(out.Additional)
	out.AllOf = f.list(out.AllOf)
	out.AnyOf = f.list(out.AnyOf)
	if len(out.Properties) > 0 {
		flat := make(map[string]*Schema, len(out.Properties))
		out.keys = make([]string, 0, len(out.Properties))
		for name, property := range out.Properties {
			flat[name] = f.schema(property)
			out.keys = append(out.keys, name)
		}
		out.Properties = flat
		slices.SortFunc(out.keys, yaml.Compare)
	}
	return out
}

func (f *flattener) list(schemas []*Schema) []*Schema {
	out := make([]*Schema, len(schemas))
	for i, s := range schemas {
		out[i] = f.schema(s)
	}
	return out
}

// merge adds src, which is not flattened, to dst, whose maps are its own. What
// cannot be merged stays on both sides, as two parts of dst's allOf.
func (f *flattener) merge(dst, src *Schema) {
	for _, part := range src.AllOf {
		f.merge(dst, part)
	}
	dstRest, srcRest := &Schema{}, &Schema{}
	m := merger{}

	f.mergeType(dst, src)
	keep(&m, &dst.Ref, src.Ref, &dstRest.Ref, &srcRest.Ref)
	f.mergeStructure(dst, src, &m, dstRest, srcRest)
	m.text(&dst.Format, src.Format, &dstRest.Format, &srcRest.Format)
	m.text(&dst.Pattern, src.Pattern, &dstRest.Pattern, &srcRest.Pattern)
	keep(&m, &dst.Minimum, src.Minimum, &dstRest.Minimum, &srcRest.Minimum)
	keep(&m, &dst.Maximum, src.Maximum, &dstRest.Maximum, &srcRest.Maximum)
	keep(&m, &dst.MultipleOf, src.MultipleOf, &dstRest.MultipleOf, &srcRest.MultipleOf)
	keep(&m, &dst.MinLength, src.MinLength, &dstRest.MinLength, &srcRest.MinLength)
	keep(&m, &dst.MaxLength, src.MaxLength, &dstRest.MaxLength, &srcRest.MaxLength)
	keep(&m, &dst.MinItems, src.MinItems, &dstRest.MinItems, &srcRest.MinItems)
	keep(&m, &dst.MaxItems, src.MaxItems, &dstRest.MaxItems, &srcRest.MaxItems)
	m.same(&dst.MinProperties, src.MinProperties, &dstRest.MinProperties, &srcRest.MinProperties)
	m.same(&dst.MaxProperties, src.MaxProperties, &dstRest.MaxProperties, &srcRest.MaxProperties)
	switch {
	case src.Default == nil, len(dst.Default) > 0 && &dst.Default[0] == &src.Default[0]: // of the same field
	case dst.Default == nil:
		dst.Default = src.Default
	default:
		dstRest.Default, srcRest.Default, dst.Default, m.hoisted = dst.Default, src.Default, nil, true
	}

	dst.ExclusiveMinimum = dst.ExclusiveMinimum || src.ExclusiveMinimum
	dst.ExclusiveMaximum = dst.ExclusiveMaximum || src.ExclusiveMaximum
	dst.UniqueItems = dst.UniqueItems || src.UniqueItems
	dst.Nullable = dst.Nullable || src.Nullable
	dst.PreserveUnknown = dst.PreserveUnknown || src.PreserveUnknown
	dst.EmbeddedResource = dst.EmbeddedResource || src.EmbeddedResource
	dst.IntOrString = dst.IntOrString || src.IntOrString
	if src.ListType != "" {
		dst.ListType = src.ListType
	}
	if src.MapType != "" {
		dst.MapType = src.MapType
	}
	if src.ListMapKeys != nil {
		dst.ListMapKeys = src.ListMapKeys
	}
	if len(src.Validations) > 0 {
		dst.Validations = append(slices.Clone(src.Validations), dst.Validations...)
	}
	if len(src.Enum) > 0 && len(dst.Enum) == 0 {
		dst.Enum = src.Enum
	}

	if m.hoisted {
		dst.AllOf = append(slices.Clone(dst.AllOf), dstRest, srcRest)
	}
	if len(dst.Required) > 0 {
		dst.Required = slices.Clone(dst.Required)
		slices.Sort(dst.Required)
		dst.Required = slices.Compact(dst.Required)
	}
}

func (f *flattener) mergeType(dst, src *Schema) {
	switch {
	case src.Type == "" || src.Type == dst.Type:
	case dst.Type == "":
		dst.Type = src.Type
	default:
		f.conflict(dst, dst.Type, src.Type)
	}
}

func (f *flattener) mergeStructure(dst, src *Schema, m *merger, dstRest, srcRest *Schema) {
	if src.Properties != nil {
		if dst.Properties == nil {
			dst.Properties = make(map[string]*Schema, len(src.Properties))
		}
		for name, property := range src.Properties {
			existing := dst.Properties[name]
			if existing == nil {
				dst.Properties[name] = property
				continue
			}
			both := existing.copy()
			both.Properties = maps.Clone(existing.Properties)
			f.merge(both, property)
			dst.Properties[name] = both
		}
	}
	if len(src.Required) > 0 {
		dst.Required = append(slices.Clone(dst.Required), src.Required...)
	}
	keep(m, &dst.Items, src.Items, &dstRest.Items, &srcRest.Items)
	switch {
	case src.Additional == nil:
		if src.AnyAdditional && dst.Additional == nil {
			dst.AnyAdditional = true
		}
	case dst.Additional == nil:
		dst.Additional = src.Additional
	default:
		both := dst.Additional.copy()
		both.Properties = maps.Clone(both.Properties)
		f.merge(both, src.Additional)
		dst.Additional = both
	}
	switch {
	case len(src.AnyOf) == 0:
	case len(dst.AnyOf) == 0:
		dst.AnyOf = src.AnyOf
	default:
		dstRest.AnyOf, srcRest.AnyOf, dst.AnyOf, m.hoisted = dst.AnyOf, src.AnyOf, nil, true
	}
}

// merger remembers whether anything had to stay on both sides.
type merger struct{ hoisted bool }

func (m *merger) text(dst *string, src string, dstRest, srcRest *string) {
	switch {
	case src == "" || src == *dst:
	case *dst == "":
		*dst = src
	default:
		*dstRest, *srcRest, *dst, m.hoisted = *dst, src, "", true
	}
}

// keep merges a value that is set on both sides by keeping both, even when they
// are equal.
func keep[T any](m *merger, dst **T, src *T, dstRest, srcRest **T) {
	switch {
	case src == nil:
	case *dst == nil:
		*dst = src
	default:
		*dstRest, *srcRest, *dst, m.hoisted = *dst, src, nil, true
	}
}

// same is keep, except that equal values are one.
func (m *merger) same(dst **int64, src *int64, dstRest, srcRest **int64) {
	if src != nil && *dst != nil && *src == **dst {
		return
	}
	keep(m, dst, src, dstRest, srcRest)
}
