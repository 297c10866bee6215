// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/schema"
)

// anyValue is a marker with one nameless argument of any kind.
type anyValue struct {
	Value any `marker:",anonymous"`
}

// jsonValue is a marker whose argument is JSON.
type jsonValue struct{ text []byte }

func (v *jsonValue) ParseMarker(_, text string) error {
	if strings.HasPrefix(strings.TrimSpace(text), "ref(") {
		return nil // a Go constant: not evaluated
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	if value == nil {
		return nil
	}
	canonical, err := json.Marshal(value)
	v.text = canonical
	return err
}

type externalDocs struct {
	URL         string `marker:"url" help:"Where the documentation is."`
	Description string `marker:",optional" help:"What it is about."`
}

// flag makes a marker of fields that the builder looks for by name.
func flag(name, summary, instead string) rule {
	r := on(markers.Field, name, "CRD validation", summary, normal, func(*scope, *schema.Schema, struct{}) error { return nil })
	r.def.Help.Deprecated = instead
	return r
}

// fieldRules are the markers that only make sense on fields, and those outside the
// validation family.
func fieldRules() []rule {
	const category = "CRD validation"
	return slices.Concat([]rule{
		flag(validation+"Required", "The field must be set.", "required"),
		flag(validation+"Optional", "The field may be left out.", "optional"),
		flag("required", "The field must be set.", ""),
		flag("optional", "The field may be left out.", ""),
		flag("k8s:optional", "The field may be left out.", ""),
		flag(validation+"Schemaless", "Say nothing about the field's value but what its own markers say. A last resort.", ""),
		on(markers.Field, "k8s:required", category, "The field must be set, and not be empty.", normal, notEmpty),
		on(markers.Field, "nullable", category, "The value may be null.", normal, func(_ *scope, s *schema.Schema, _ struct{}) error {
			s.Nullable = true
			return nil
		}),
		on(markers.Field, "kubebuilder:default", category, "The value of the field when it is not set, for example 3, \"text\", {80,443} or {key: value}.", normal, setDefault),
		on(markers.Field, "default", category, "The value of the field when it is not set, as JSON. Applied before kubebuilder:default.", first, func(_ *scope, s *schema.Schema, v jsonValue) error {
			if v.text != nil {
				s.Default = v.text
			}
			return nil
		}),
		on(markers.Field, "kubebuilder:example", category, "A value for the documentation.", normal, func(_ *scope, s *schema.Schema, v anyValue) (err error) {
			s.Example, err = json.Marshal(v.Value)
			return err
		}),
		on(markers.Field, validation+"EmbeddedResource", category, "The value is a Kubernetes object with apiVersion, kind and metadata.", normal, func(_ *scope, s *schema.Schema, v struct{}) error {
			return embeddedResource(s, v)
		}),
		on(markers.Field, "k8s:immutable", category, "The value cannot change once it is set.", normal, func(_ *scope, s *schema.Schema, _ struct{}) error {
			return addValidation(s, xValidation{Rule: "self == oldSelf", Message: "field is immutable"})
		}),
		on(markers.Field, "k8s:maxItems", category, "The most items allowed.", normal, func(_ *scope, s *schema.Schema, v count) error {
			return maxItems(s, v)
		}),
		on(markers.Field, "k8s:minimum", category, "The smallest number allowed.", normal, func(_ *scope, s *schema.Schema, v bound) (err error) {
			s.Minimum, err = numeric(s, float64(v))
			return err
		}),
		on(markers.Field, "k8s:maximum", category, "The largest number allowed.", normal, func(_ *scope, s *schema.Schema, v bound) (err error) {
			s.Maximum, err = numeric(s, float64(v))
			return err
		}),
		on(markers.Field, "k8s:enum", category, "Belongs on a type, never on a field.", normal, func(*scope, *schema.Schema, struct{}) error {
			return errors.New("belongs on a type, not on a field")
		}),
	},
		both("kubebuilder:pruning:PreserveUnknownFields", "CRD processing", "Keep fields that the schema does not have.", normal, preserveUnknown),
		both("kubebuilder:title", category, "The title of the value in the documentation.", normal, func(s *schema.Schema, v anyValue) error {
			title, ok := v.Value.(string)
			if !ok && v.Value != nil {
				return fmt.Errorf("expected a string, got %v", v.Value)
			}
			s.Title = title
			return nil
		}),
		both("kubebuilder:externalDocs", "CRD", "Documentation elsewhere.", normal, func(s *schema.Schema, v externalDocs) error {
			if _, err := url.ParseRequestURI(v.URL); err != nil {
				return err
			}
			s.ExternalDocs = &schema.ExternalDocs{URL: v.URL, Description: v.Description}
			return nil
		}),
	)
}

func setDefault(_ *scope, s *schema.Schema, v anyValue) error {
	text, err := json.Marshal(v.Value)
	if s.Type == "array" && string(text) == "{}" {
		text = []byte("[]")
	}
	s.Default = text
	return err
}

func notEmpty(_ *scope, s *schema.Schema, _ struct{}) error {
	one := int64(1)
	switch {
	case s.Type == "string" && s.MinLength == nil:
		s.MinLength = &one
	case s.Type == "array" && s.MinItems == nil:
		s.MinItems = &one
	case s.Type == "object" && s.MinProperties == nil:
		s.MinProperties = &one
	case s.Type != "string" && s.Type != "array" && s.Type != "object" && s.Ref != nil && s.MinProperties == nil:
		s.MinProperties = &one
	}
	return nil
}

// typeRules are the markers that only make sense on types. They apply after all
// others, in a fixed order, so that the order of the rules they add is fixed.
func typeRules() []rule {
	const category = "CRD validation"
	add := func(s *schema.Schema, rule, message string, fields oneOf) error {
		if len(fields) == 0 {
			return nil
		}
		return addValidation(s, xValidation{Rule: rule, Message: fmt.Sprintf(message, []string(fields))})
	}
	return []rule{
		on(markers.Type, validation+"AtMostOneOf", category, "At most one of the named fields may be set. Repeatable.", normal+1, func(_ *scope, s *schema.Schema, fields oneOf) error {
			return add(s, fields.has("+", "(", "?1:0)")+" <= 1", "at most one of the fields in %v may be set", fields)
		}),
		on(markers.Type, validation+"ExactlyOneOf", category, "Exactly one of the named fields must be set. Repeatable.", normal+2, func(_ *scope, s *schema.Schema, fields oneOf) error {
			return add(s, fields.has("+", "(", "?1:0)")+" == 1", "exactly one of the fields in %v must be set", fields)
		}),
		on(markers.Type, validation+"AtLeastOneOf", category, "At least one of the named fields must be set. Repeatable.", normal+3, func(_ *scope, s *schema.Schema, fields oneOf) error {
			return add(s, fields.has("||", "", ""), "at least one of the fields in %v must be set", fields)
		}),
		on(markers.Type, "k8s:enum", category, "The values allowed are the string constants of the type in its package.", normal, enumOfConstants),
	}
}

// oneOfFields returns the fields that the one-of rules of a type name.
func oneOfFields(set markers.Set) ([]string, error) {
	var all []string
	for _, kind := range []string{"AtMostOneOf", "ExactlyOneOf", "AtLeastOneOf"} {
		for _, fields := range markers.All[oneOf](set, validation+kind) {
			for _, field := range fields {
				if strings.Contains(field, ".") {
					return nil, fmt.Errorf("+%s%s: %w: %s", validation, kind, errOneOfPath, field)
				}
			}
			all = append(all, fields...)
		}
	}
	return all, nil
}

func enumOfConstants(c *scope, s *schema.Schema, _ struct{}) error {
	obj := c.pkg.Info.Defs[c.decl.Spec.Name]
	if obj == nil {
		return fmt.Errorf("unknown type %s", c.decl.Spec.Name.Name)
	}
	if basic, ok := obj.Type().Underlying().(*types.Basic); !ok || basic.Info()&types.IsString == 0 {
		return fmt.Errorf("the type must be a string, not %s", obj.Type())
	}
	var values [][]byte
	for _, file := range c.pkg.Files {
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.CONST {
				values = append(values, constants(c.pkg.Info, gen, obj.Type())...)
			}
		}
	}
	if len(values) == 0 {
		return fmt.Errorf("no constant of type %s has a value", c.decl.Spec.Name.Name)
	}
	slices.SortFunc(values, func(a, b []byte) int { return strings.Compare(string(a), string(b)) })
	s.Type, s.Enum = "string", values
	return nil
}

// constants returns the values of the constants of a type that are written as
// string literals.
func constants(info *types.Info, gen *ast.GenDecl, t types.Type) [][]byte {
	var values [][]byte
	for _, spec := range gen.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range spec.Names {
			obj := info.Defs[name]
			if obj == nil || obj.Type() != t || i >= len(spec.Values) {
				continue
			}
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				continue
			}
			if text, err := strconv.Unquote(literal.Value); err == nil {
				if value, err := json.Marshal(text); err == nil {
					values = append(values, value)
				}
			}
		}
	}
	return values
}

// topologyRules say how server-side apply merges.
func topologyRules() []rule {
	const category = "CRD processing"
	listType := func(s *schema.Schema, v string) error {
		if s.Type != "array" {
			return need(false, "an array", s)
		}
		if v != "map" && v != "set" && v != "atomic" {
			return errors.New(`must be "map", "set" or "atomic"`)
		}
		s.ListType = v
		return nil
	}
	listMapKey := func(s *schema.Schema, v string) error {
		if s.Type != "array" {
			return need(false, "an array", s)
		}
		if s.ListType != "map" {
			return errors.New("needs +listType=map beside it")
		}
		if !slices.Contains(s.ListMapKeys, v) {
			s.ListMapKeys = append(slices.Clone(s.ListMapKeys), v)
		}
		return nil
	}
	mapType := func(allowUnknown bool) func(s *schema.Schema, v string) error {
		return func(s *schema.Schema, v string) error {
			if s.Type != "object" && (!allowUnknown || s.Type != "") {
				return need(false, "an object", s)
			}
			if v != "granular" && v != "atomic" {
				return errors.New(`must be "granular" or "atomic"`)
			}
			s.MapType = v
			return nil
		}
	}
	const (
		listHelp = "How server-side apply merges the list: map (items merge by their keys), set (scalar items, each once) or atomic (replaced as a whole)."
		keyHelp  = "A field that identifies an item of a list with listType=map. Repeatable."
	)
	return slices.Concat(
		both("listType", category, listHelp, first, listType),
		both("k8s:listType", category, listHelp, first, listType),
		both("listMapKey", category, keyHelp, normal, listMapKey),
		both("k8s:listMapKey", category, keyHelp, normal, listMapKey),
		both("mapType", category, "How server-side apply merges the map: granular (by key) or atomic (replaced as a whole).", normal, mapType(false)),
		both("structType", category, "How server-side apply merges the struct: granular (by field) or atomic (replaced as a whole).", normal, mapType(true)),
	)
}
