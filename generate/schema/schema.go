// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema holds the schemas of Go types on their way into a
// CustomResourceDefinition: as they are read, with references to other types
// (a [Schema] with a [Ref]); resolved, by a [Resolver]; flat, by a [Flattener]; and
// written as YAML, by a [Writer], or as the API's own type, by [Schema.Props].
//
// Schemas are shared, not copied: a type that fifty fields use is resolved and
// flattened once, and from then on the schema is a graph. Nothing in it is changed
// once it is part of that graph.
package schema

import (
	"fmt"
	"go/token"

	"github.com/steer-dev/steer/generate/load"
)

// Schema is the part of an OpenAPI v3 schema that Go types and markers can
// express. Pointers and nil slices say that a value is not set.
type Schema struct {
	Ref *Ref // another type, until resolved

	Type, Format, Title, Description, Pattern string

	Default, Example []byte   // JSON
	Enum             [][]byte // JSON

	Minimum, Maximum, MultipleOf       *float64
	ExclusiveMinimum, ExclusiveMaximum bool
	MinLength, MaxLength               *int64
	MinItems, MaxItems                 *int64
	MinProperties, MaxProperties       *int64
	UniqueItems, Nullable              bool

	Properties    map[string]*Schema
	Required      []string
	Items         *Schema
	Additional    *Schema
	AnyAdditional bool // additionalProperties: true
	AllOf, AnyOf  []*Schema
	ExternalDocs  *ExternalDocs

	PreserveUnknown, EmbeddedResource, IntOrString bool

	ListType, MapType string
	ListMapKeys       []string
	Validations       []Validation

	Pos token.Pos // where it comes from, for errors

	keys []string // of Properties, sorted; set when flattened
}

// Ref names a type.
type Ref struct {
	Package *load.Package
	Name    string
}

// ExternalDocs points to documentation elsewhere.
type ExternalDocs struct{ URL, Description string }

// Validation is a CEL rule.
type Validation struct {
	Rule, Message, MessageExpression, Reason, FieldPath string
	OptionalOldSelf                                     *bool
}

// Copy returns a shallow copy.
func (s *Schema) Copy() *Schema {
	c := *s
	return &c
}

// Describe names the type of a schema in a message.
func (s *Schema) Describe() string {
	switch {
	case s.Type != "":
		return s.Type
	case s.Ref != nil:
		return "type " + s.Ref.Name
	}
	return "a value without type"
}

// Impossible says which limits of a schema leave no value.
func (s *Schema) Impossible() []string {
	var found []string
	if s.Minimum != nil && s.Maximum != nil {
		low, high := *s.Minimum, *s.Maximum
		if low > high || low == high && (s.ExclusiveMinimum || s.ExclusiveMaximum) {
			found = append(found, fmt.Sprintf("no number is at least %v and at most %v", low, high))
		}
	}
	for _, limit := range []struct {
		of        string
		low, high *int64
	}{
		{"length", s.MinLength, s.MaxLength},
		{"number of items", s.MinItems, s.MaxItems},
		{"number of properties", s.MinProperties, s.MaxProperties},
	} {
		if limit.low != nil && limit.high != nil && *limit.low > *limit.high {
			found = append(found, fmt.Sprintf("its %s cannot be at least %d and at most %d", limit.of, *limit.low, *limit.high))
		}
	}
	return found
}
