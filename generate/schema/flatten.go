// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"slices"

	"github.com/steer-dev/steer/generate/yaml"
)

// Flattener merges every allOf into the schema that has it.
type Flattener struct {
	// Conflict is told of a schema that is said to be of two types.
	Conflict func(at *Schema, a, b string)

	done map[*Schema]*Schema
}

// Flat returns a resolved schema without allOf, but for what cannot be merged; nil
// for nil.
func (f *Flattener) Flat(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	if f.done == nil {
		f.done = map[*Schema]*Schema{}
	}
	if out := f.done[s]; out != nil {
		return out
	}
	out := s.Copy()
	out.AllOf = nil
	if len(s.AllOf) > 0 {
		out.Properties = maps.Clone(s.Properties)
	}
	f.done[s] = out
	for _, part := range s.AllOf {
		f.merge(out, part)
	}
	out.Items = f.Flat(out.Items)
	out.Additional = f.Flat(out.Additional)
	out.AllOf = f.list(out.AllOf)
	out.AnyOf = f.list(out.AnyOf)
	if len(out.Properties) > 0 {
		flat := make(map[string]*Schema, len(out.Properties))
		out.keys = make([]string, 0, len(out.Properties))
		for name, property := range out.Properties {
			flat[name] = f.Flat(property)
			out.keys = append(out.keys, name)
		}
		out.Properties = flat
		slices.SortFunc(out.keys, yaml.Compare)
	}
	return out
}

func (f *Flattener) list(schemas []*Schema) []*Schema {
	out := make([]*Schema, len(schemas))
	for i, s := range schemas {
		out[i] = f.Flat(s)
	}
	return out
}

// merge adds src, which is not flattened, to dst, whose maps are its own. What
// cannot be merged stays on both sides, as two parts of dst's allOf.
func (f *Flattener) merge(dst, src *Schema) {
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

func (f *Flattener) mergeType(dst, src *Schema) {
	switch {
	case src.Type == "" || src.Type == dst.Type:
	case dst.Type == "":
		dst.Type = src.Type
	default:
		f.Conflict(dst, dst.Type, src.Type)
	}
}

func (f *Flattener) mergeStructure(dst, src *Schema, m *merger, dstRest, srcRest *Schema) {
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
			both := existing.Copy()
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
		both := dst.Additional.Copy()
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
