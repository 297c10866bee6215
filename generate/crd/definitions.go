// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/schema"
)

// Definitions returns the schemas of types and of all that they refer to, as
// OpenAPI v2 definitions that refer to each other; their names are returned by
// [schema.DefinitionName]. Metadata is complete here, unlike in a CustomResourceDefinition.
func Definitions(p *load.Program, roots []*load.TypeDecl) (map[string]any, error) {
	s := newSchemas(p, &Options{AllowDangerousTypes: true, IgnoreUnexportedFields: true, fullMetadata: true})
	for _, root := range roots {
		s.builder.schemaOf(schema.Ref{Package: root.Package, Name: root.Spec.Name.Name})
	}
	all := make(map[string]any, len(s.builder.schemas))
	for ref, read := range s.builder.schemas {
		flat := s.flattener.Flat(embedded(read, s.builder))
		text, err := json.Marshal(flat.Props(nil))
		if err != nil {
			return nil, err
		}
		var entry map[string]any
		if err := json.Unmarshal(text, &entry); err != nil {
			return nil, err
		}
		downgrade(entry)
		all[schema.DefinitionName(ref.Package.Path, ref.Name)] = entry
	}
	for name, entry := range all {
		entry := entry.(map[string]any)
		target, ok := entry["$ref"].(string)
		if !ok {
			continue
		}
		// A definition that is nothing but a reference has no name of its own
		// later: it becomes a copy.
		if of, ok := all[strings.TrimPrefix(target, schema.Definitions)].(map[string]any); ok {
			copied := maps.Clone(of)
			delete(entry, "$ref")
			maps.Copy(copied, entry)
			all[name] = copied
		}
	}
	return all, nil
}

// embedded replaces the references in allOf, which stand for embedded structs, by
// the schemas they mean; all other references stay.
func embedded(s *schema.Schema, b *builder) *schema.Schema {
	if s == nil {
		return nil
	}
	out := s.Copy()
	out.AllOf = make([]*schema.Schema, len(s.AllOf))
	for i, part := range s.AllOf {
		if part.Ref != nil {
			part = b.schemaOf(*part.Ref)
		}
		out.AllOf[i] = embedded(part, b)
	}
	out.Items, out.Additional = embedded(s.Items, b), embedded(s.Additional, b)
	if s.Properties != nil {
		out.Properties = make(map[string]*schema.Schema, len(s.Properties))
		for name, property := range s.Properties {
			out.Properties[name] = embedded(property, b)
		}
	}
	return out
}

// downgrade removes from a schema what OpenAPI v2 does not have.
func downgrade(entry map[string]any) {
	if _, reference := entry["$ref"]; reference {
		delete(entry, "type")
		delete(entry, "format")
	}
	for _, key := range []string{"nullable", "anyOf", "oneOf", "not"} {
		delete(entry, key)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if nested, ok := entry[key].(map[string]any); ok {
			downgrade(nested)
		}
	}
	if properties, ok := entry["properties"].(map[string]any); ok {
		for _, property := range properties {
			if property, ok := property.(map[string]any); ok {
				downgrade(property)
			}
		}
	}
	if parts, ok := entry["allOf"].([]any); ok {
		for _, part := range parts {
			if part, ok := part.(map[string]any); ok {
				downgrade(part)
			}
		}
	}
}
