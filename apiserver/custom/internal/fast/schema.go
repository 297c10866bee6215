// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fast accepts, without allocating, objects that need no work: those that
// certainly satisfy a schema, and those that pruning and defaulting would leave as they are.
// What it does not accept is for the libraries to judge.
package fast

import (
	"math"
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/internal/jsontext"
)

// Schema accepts values that certainly satisfy a schema, without allocating.
// It never refuses: what it does not accept, the validators of the library judge
// and explain. A nil Schema accepts nothing, so that a keyword which is not known
// here costs time, never a check.
type Schema struct {
	kind       string // a JSON type, "int-or-string", or empty for any value
	nullable   bool
	properties map[string]*Schema
	// additional is for members that are not in properties; open accepts all.
	additional           *Schema
	open                 bool
	items                *Schema
	anyItems             bool
	required             []string // in order
	enum                 []string
	pattern              *regexp.Regexp
	format               string
	minLength, maxLength *int64 // of a string, a list or an object
	minimum, maximum     float64
}

// exact bounds the integers that every number type holds exactly.
const exact = 1 << 53

// New returns nil for schemas with keywords that it does not know.
func New(s *spec.Schema) *Schema {
	if s == nil || len(s.AllOf) > 0 || len(s.OneOf) > 0 || s.Not != nil || len(s.PatternProperties) > 0 || s.MultipleOf != nil ||
		s.UniqueItems || s.ExclusiveMaximum || s.ExclusiveMinimum || s.AdditionalItems != nil || len(s.Dependencies) > 0 || s.Ref.String() != "" {
		return nil
	}
	p := &Schema{nullable: s.Nullable, minimum: -exact, maximum: exact}
	intOrString := len(s.Type) == 2 && s.Type[0] == "integer" && s.Type[1] == "string"
	if len(s.AnyOf) > 0 && !(intOrString && isIntOrString(s.AnyOf)) {
		return nil
	}
	known := false
	switch {
	case intOrString:
		p.kind, known = "int-or-string", unconstrained(s)
	case len(s.Type) == 0:
		known = unconstrained(s) && len(s.Properties) == 0 && s.Items == nil && s.AdditionalProperties == nil
	case len(s.Type) == 1:
		p.kind = s.Type[0]
		known = p.constrain(s)
	}
	if !known {
		return nil
	}
	return p
}

// isIntOrString tells the usual way to write that a value is either.
func isIntOrString(anyOf []spec.Schema) bool {
	if len(anyOf) != 2 {
		return false
	}
	for i, want := range []string{"integer", "string"} {
		if s := &anyOf[i]; len(s.Type) != 1 || s.Type[0] != want || New(s) == nil || !unconstrained(s) {
			return false
		}
	}
	return true
}

// unconstrained reports whether nothing is said about values but their type.
func unconstrained(s *spec.Schema) bool {
	return s.Format == "" && len(s.Enum) == 0 && s.Pattern == "" && s.MinLength == nil && s.MaxLength == nil && s.Minimum == nil && s.Maximum == nil &&
		s.MinItems == nil && s.MaxItems == nil && s.MinProperties == nil && s.MaxProperties == nil && len(s.Required) == 0
}

// constrain takes over what a schema says about values of its one type.
func (p *Schema) constrain(s *spec.Schema) (known bool) {
	for _, value := range s.Enum {
		text, ok := value.(string)
		if !ok || p.kind != "string" {
			return false
		}
		p.enum = append(p.enum, text)
	}
	if s.Format != "" && p.kind != "string" && p.kind != "integer" {
		return false
	}
	switch p.kind {
	case "boolean":
		return true
	case "string":
		p.format, p.minLength, p.maxLength = s.Format, s.MinLength, s.MaxLength
		if s.Pattern != "" {
			var err error
			if p.pattern, err = regexp.Compile(s.Pattern); err != nil {
				return false
			}
		}
		return true
	case "integer", "number":
		return p.bound(s)
	case "array":
		p.minLength, p.maxLength = s.MinItems, s.MaxItems
		if s.Items == nil {
			p.anyItems = true
			return true
		}
		p.items = New(s.Items.Schema)
		return len(s.Items.Schemas) == 0
	case "object":
		return p.members(s)
	}
	return false
}

// bound takes over the range of a number.
func (p *Schema) bound(s *spec.Schema) (known bool) {
	switch s.Format {
	case "", "int64":
	case "int32":
		p.minimum, p.maximum = math.MinInt32, math.MaxInt32
	default:
		return false
	}
	for _, limit := range []*float64{s.Minimum, s.Maximum} {
		// A limit that is itself out of range is an error of its own.
		if limit != nil && (*limit != math.Trunc(*limit) || math.Abs(*limit) > math.MaxInt32) {
			return false
		}
	}
	if s.Minimum != nil {
		p.minimum = max(p.minimum, *s.Minimum)
	}
	if s.Maximum != nil {
		p.maximum = min(p.maximum, *s.Maximum)
	}
	return true
}

// members takes over the fields of an object.
func (p *Schema) members(s *spec.Schema) (known bool) {
	p.minLength, p.maxLength = s.MinProperties, s.MaxProperties
	p.required = slices.Compact(slices.Sorted(slices.Values(s.Required)))
	p.properties = make(map[string]*Schema, len(s.Properties))
	for name := range s.Properties {
		property := s.Properties[name]
		p.properties[name] = New(&property)
	}
	switch additional := s.AdditionalProperties; {
	case additional == nil:
		p.open = true
	case additional.Schema != nil:
		p.additional = New(additional.Schema)
		return additional.Allows
	default:
		p.open = additional.Allows
	}
	return true
}

// Accepts reports whether an object certainly satisfies the schema.
//
//steer:fast custom
func (p *Schema) Accepts(d *doc.Doc) bool {
	if p == nil || p.kind != "" && p.kind != "object" || p.kind != "" && !p.acceptsLength(d.Len()) {
		return false
	}
	for _, name := range p.required {
		if !d.Has(name) {
			return false
		}
	}
	if _, has := doc.Metadata(d); has {
		if property, checked := p.member("metadata"); checked && !property.acceptsObjects() {
			return false
		}
	}
	return doc.Each(d, d, func(name string, value, _ doc.Value) bool {
		property, checked := p.member(name)
		return !checked || property.AcceptsValue(value)
	})
}

// acceptsObjects reports whether all objects certainly satisfy the schema.
func (p *Schema) acceptsObjects() bool {
	return p != nil && p.enum == nil && p.minLength == nil && p.maxLength == nil && (p.kind == "" || p.kind == "object" && p.open && len(p.properties) == 0 && len(p.required) == 0)
}

// member returns what a member of an object has to satisfy; checked is false if it may
// be anything.
func (p *Schema) member(name string) (property *Schema, checked bool) {
	if p.kind == "" {
		return nil, false
	}
	if property, known := p.properties[name]; known {
		return property, true
	}
	return p.additional, !p.open
}

// AcceptsValue reports whether a value certainly satisfies the schema.
func (p *Schema) AcceptsValue(value doc.Value) bool {
	text, ok := value.Text()
	if !ok {
		return false
	}
	r := text.Reader()
	return p.take(&r)
}

// take is AcceptsValue for the value that a reader is at. It takes the value if it returns
// true.
func (p *Schema) take(r *jsontext.Reader) bool {
	if p == nil {
		return false
	}
	kind := r.Kind()
	if p.kind == "" {
		r.Skip()
		return kind != 'n' || len(p.enum) == 0
	}
	switch kind {
	case 'n':
		r.Skip()
		return p.nullable && len(p.enum) == 0
	case '"':
		if p.kind == "int-or-string" {
			r.Skip()
			return true
		}
		return p.kind == "string" && p.takeString(r)
	case 't', 'f':
		r.Skip()
		return p.kind == "boolean"
	case '[':
		return p.kind == "array" && p.takeList(r)
	case '{':
		return p.kind == "object" && p.takeObject(r)
	}
	return p.takeNumber(r)
}

func (p *Schema) acceptsLength(n int) bool {
	return (p.minLength == nil || int64(n) >= *p.minLength) && (p.maxLength == nil || int64(n) <= *p.maxLength)
}

func (p *Schema) takeNumber(r *jsontext.Reader) bool {
	whole, fraction, isFraction := r.Number()
	switch {
	case p.kind == "integer" && isFraction:
		return false
	case p.kind == "integer", p.kind == "number":
		if !isFraction {
			fraction = float64(whole)
		}
		return fraction >= p.minimum && fraction <= p.maximum
	}
	return p.kind == "int-or-string" && !isFraction
}

func (p *Schema) takeString(r *jsontext.Reader) bool {
	if p.minLength == nil && p.maxLength == nil && p.enum == nil && p.pattern == nil && p.format == "" {
		r.Skip()
		return true
	}
	v := r.Text()
	if (p.minLength != nil || p.maxLength != nil) && !p.acceptsLength(utf8.RuneCountInString(v)) {
		return false
	}
	if p.enum != nil && !slices.Contains(p.enum, v) || p.pattern != nil && !p.pattern.MatchString(v) {
		return false
	}
	return p.format == "" || strfmt.Default.ContainsName(p.format) && strfmt.Default.Validates(p.format, v)
}

func (p *Schema) takeList(r *jsontext.Reader) bool {
	n := 0
	for ; r.Element(); n++ {
		if p.anyItems {
			r.Skip()
		} else if !p.items.take(r) {
			return false
		}
	}
	return p.acceptsLength(n)
}

func (p *Schema) takeObject(r *jsontext.Reader) bool {
	n, required := 0, p.required
	for name, ok := r.Member(); ok; name, ok = r.Member() {
		n++
		if len(required) > 0 && required[0] == name {
			required = required[1:]
		}
		property, checked := p.member(name)
		if !checked {
			r.Skip()
		} else if !property.take(r) {
			return false
		}
	}
	return len(required) == 0 && p.acceptsLength(n)
}
