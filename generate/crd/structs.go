// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"go/ast"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/schema"
)

// structure makes the schema of a struct. Embedded structs become parts of its
// allOf.
func (c *scope) structure(x *ast.StructType) *schema.Schema {
	s := &schema.Schema{Type: "object", Properties: map[string]*schema.Schema{}, Pos: x.Pos()}
	if c.decl == nil || c.decl.Spec.Type != x {
		c.program.Problemf(x.Pos(), "inline struct types are not supported, use a named type instead")
		return s
	}
	set := c.program.TypeMarkers(c.decl)
	oneOf, err := oneOfFields(set)
	if err != nil {
		c.program.Problemf(x.Pos(), "%v", err)
		return s
	}
	optional := c.program.PackageMarkers(c.pkg).Has(validation + "Optional")
	var immutable []string
	for _, field := range x.Fields.List {
		for _, name := range fieldNames(field) {
			if name != "" && c.options.IgnoreUnexportedFields && !ast.IsExported(name) {
				continue
			}
			f, ok := c.field(field, name)
			if !ok {
				continue
			}
			if why := f.required(optional); why != "" {
				if slices.Contains(oneOf, f.name) {
					c.program.Problemf(field.Pos(), "field %s takes part in a one-of rule and %s", f.name, why)
					return s
				}
				s.Required = append(s.Required, f.name)
			}
			property := c.property(field, f.set)
			c.contradictions(field, f.name, f.set, property)
			if f.inline {
				s.AllOf = append(s.AllOf, property)
				continue
			}
			if f.set.Has("k8s:immutable") {
				immutable = append(immutable, f.name)
			}
			if s.Properties[f.name] != nil && c.strict {
				c.program.Problemf(field.Pos(), "field %s has the name %q in JSON, as another field of %s has", name, f.name, c.decl.Spec.Name.Name)
			}
			s.Properties[f.name] = property
		}
	}
	slices.Sort(s.Required)
	for _, name := range immutable {
		if !slices.Contains(s.Required, name) {
			s.Validations = append(s.Validations, schema.Validation{
				Rule:    fmt.Sprintf("!has(oldSelf.%s) || has(self.%s)", name, name),
				Message: fmt.Sprintf("field %s is immutable once set", name),
			})
		}
	}
	return s
}

func (c *scope) property(field *ast.Field, set markers.Set) *schema.Schema {
	s := &schema.Schema{}
	if !set.Has(validation + "Schemaless") {
		s = c.inner().expr(field.Type)
	}
	s.Pos = field.Pos()
	s.Description = c.doc(field.Doc)
	c.apply(set, markers.Field, s)
	return s
}

// jsonField is a struct field as encoding/json sees it.
type jsonField struct {
	name      string
	inline    bool
	omitEmpty bool
	set       markers.Set
}

func (c *scope) field(field *ast.Field, goName string) (jsonField, bool) {
	f := jsonField{set: c.program.FieldMarkers(c.decl, field)}
	tag, tagged := jsonTag(field)
	if !tagged {
		c.program.Problemf(field.Pos(), "field %q of type %q has no json tag", goName, c.decl.Spec.Name.Name)
		return f, false
	}
	options := strings.Split(tag, ",")
	if len(options) == 1 && options[0] == "-" {
		return f, false
	}
	f.name = options[0]
	f.inline = f.name == "" || slices.Contains(options[1:], "inline")
	f.omitEmpty = slices.Contains(options[1:], "omitempty") || slices.Contains(options[1:], "omitzero")
	return f, true
}

// required says why a field must be set, "" if it need not be.
func (f jsonField) required(optionalByDefault bool) string {
	switch {
	case f.set.Has(validation + "Optional"):
		return ""
	case f.set.Has(validation + "Required"):
		return "cannot be marked as required"
	case f.set.Has("optional"), f.set.Has("k8s:optional"):
		return ""
	case f.set.Has("required"), f.set.Has("k8s:required"):
		return "cannot be marked as required"
	case optionalByDefault || f.inline || f.omitEmpty:
		return ""
	}
	return "must have the omitempty or omitzero option"
}

// fieldNames returns the names that a field declares, "" for an embedded one.
func fieldNames(field *ast.Field) []string {
	if len(field.Names) == 0 {
		return []string{""}
	}
	names := make([]string, len(field.Names))
	for i, name := range field.Names {
		names[i] = name.Name
	}
	return names
}

func jsonTag(field *ast.Field) (tag string, ok bool) {
	if field.Tag == nil {
		return "", false
	}
	text, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return "", false
	}
	return reflect.StructTag(text).Lookup("json")
}
