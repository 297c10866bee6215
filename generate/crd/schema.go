// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd turns Go types with markers into CustomResourceDefinitions.
//
// A type goes through four stages:
//
//   - build: each type declaration becomes a [Schema] of its own, in which other
//     types are references; markers and documentation are applied;
//   - resolve: references are replaced by the schemas they mean; what stands at the
//     place of use is kept beside it, as an allOf;
//   - flatten: every allOf is merged into its parent;
//   - emit: the result is written as YAML.
//
// Schemas are shared, not copied: a type that fifty fields use is built, resolved
// and flattened once, and after the second stage the schema is a graph. Nothing in
// it is changed once it is part of that graph.
package crd

import (
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

	pos  token.Pos // where it comes from, for errors
	keys []string  // of Properties, sorted; set when flattened
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

// copy returns a shallow copy.
func (s *Schema) copy() *Schema {
	c := *s
	return &c
}
