// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"maps"
	"strings"

	"k8s.io/kube-openapi/pkg/util"

	"github.com/steer-dev/steer/generate/load"
)

const definitions = "#/definitions/"

// Definitions returns the schemas of types and of all that they refer to, as
// OpenAPI v2 definitions that refer to each other; their names are returned by
// [DefinitionName]. Metadata is complete here, unlike in a CustomResourceDefinition.
func Definitions(p *load.Program, roots []*load.TypeDecl) (map[string]any, error) {
	s := newSchemas(p, &Options{AllowDangerousTypes: true, IgnoreUnexportedFields: true, fullMetadata: true})
	for _, root := range roots {
		s.builder.schemaOf(Ref{root.Package, root.Spec.Name.Name})
	}
	e := newEmitter(nil)
	all := make(map[string]any, len(s.builder.schemas))
	for ref, schema := range s.builder.schemas {
		flat := s.flattener.schema(embedded(schema, s.builder))
		text, err := json.Marshal(e.props(flat))
		if err != nil {
			return nil, err
		}
		var entry map[string]any
		if err := json.Unmarshal(text, &entry); err != nil {
			return nil, err
		}
		downgrade(entry)
		all[DefinitionName(ref.Package.Path, ref.Name)] = entry
	}
	for name, entry := range all {
		entry := entry.(map[string]any)
		target, ok := entry["$ref"].(string)
		if !ok {
			continue
		}
		// A definition that is nothing but a reference has no name of its own
		// later: it becomes a copy.
		if of, ok := all[strings.TrimPrefix(target, definitions)].(map[string]any); ok {
			copied := maps.Clone(of)
			delete(entry, "$ref")
			maps.Copy(copied, entry)
			all[name] = copied
		}
	}
	return all, nil
}

// DefinitionName is the name of a type in OpenAPI v2 definitions.
func DefinitionName(path, name string) string { return util.ToRESTFriendlyName(path + "." + name) }

// embedded replaces the references in allOf, which stand for embedded structs, by
// the schemas they mean; all other references stay.
func embedded(s *Schema, b *builder) *Schema {
	if s == nil {
		return nil
	}
	out := s.copy()
	out.AllOf = make([]*Schema, len(s.AllOf))
	for i, part := range s.AllOf {
		if part.Ref != nil {
			part = b.schemaOf(*part.Ref)
		}
		out.AllOf[i] = embedded(part, b)
	}
	out.Items, out.Additional = embedded(s.Items, b), embedded(s.Additional, b)
	if s.Properties != nil {
		out.Properties = make(map[string]*Schema, len(s.Properties))
		for name, property := range s.Properties {
			out.Properties[name] = embedded(property, b)
		}
	}
	return out
}

// downgrade removes from a schema what OpenAPI v2 does not have.
func downgrade(schema map[string]any) {
	if _, reference := schema["$ref"]; reference {
		delete(schema, "type")
		delete(schema, "format")
	}
	for _, key := range []string{"nullable", "anyOf", "oneOf", "not"} {
		delete(schema, key)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if nested, ok := schema[key].(map[string]any); ok {
			downgrade(nested)
		}
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for _, property := range properties {
			if property, ok := property.(map[string]any); ok {
				downgrade(property)
			}
		}
	}
	if parts, ok := schema["allOf"].([]any); ok {
		for _, part := range parts {
			if part, ok := part.(map[string]any); ok {
				downgrade(part)
			}
		}
	}
}
