// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
)

// v2Prefix precedes the name of a definition in references of version 2.
const v2Prefix = "#/definitions/"

// v3 builds the version 3 document of a group version.
func (v *groupVersion) v3(o Options) any {
	paths := map[string]any{}
	for p, item := range v.paths() {
		out := map[string]any{}
		for method, op := range item.operations {
			out[method] = op.v3()
		}
		if len(item.parameters) > 0 {
			out["parameters"] = v3Parameters(item.parameters)
		}
		paths[p] = out
	}
	info := map[string]any{"title": "Kubernetes", "version": o.Version}
	if v.resources[0].Type != nil {
		d := v.discovery()
		paths["/"+d.path+"/"] = map[string]any{"get": d.get()}
	} else {
		info = map[string]any{"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
	}
	return map[string]any{
		"openapi": "3.0.0", "info": info, "paths": paths,
		"components": map[string]any{"schemas": v.definitions()},
	}
}

func v3Parameters(list []parameter) []any {
	var out []any
	for _, p := range list {
		entry := map[string]any{
			"name": p.name, "in": p.in, "description": p.description,
			"schema": map[string]any{"type": p.schemaType, "uniqueItems": true},
		}
		if p.in == "path" {
			entry["required"] = true
		}
		out = append(out, entry)
	}
	return out
}

func (o *operation) v3() map[string]any {
	content := func(model string, media []string) map[string]any {
		out := map[string]any{}
		for _, m := range media {
			out[m] = map[string]any{"schema": map[string]any{"$ref": gotypes.RefPrefix + model}}
		}
		return out
	}
	responses := map[string]any{"401": map[string]any{"description": "Unauthorized"}}
	for code, model := range o.answers {
		responses[code] = map[string]any{"description": statusText(code), "content": content(model, o.produces)}
	}
	out := o.common(responses)
	if len(o.parameters) > 0 {
		out["parameters"] = v3Parameters(o.parameters)
	}
	if o.body != "" {
		body := map[string]any{"content": content(o.body, o.accepts)}
		if o.required {
			body["required"] = true
		}
		out["requestBody"] = body
	}
	return out
}

// common returns the parts of an operation that are the same in both versions.
func (o *operation) common(responses map[string]any) map[string]any {
	return map[string]any{
		"tags": []string{o.tag}, "description": o.description, "operationId": o.id, "responses": responses,
		actionExtension: o.action, kindExtension: gvk(o.kind),
	}
}

func statusText(code string) string {
	return map[string]string{"200": "OK", "201": "Created", "202": "Accepted"}[code]
}

// v2 builds the version 2 document, which covers all group versions.
func (d *Documents) v2() any {
	paths, definitions := map[string]any{}, map[string]*spec.Schema{}
	// Built-in kinds come first: they have the names that they always have.
	for _, key := range slices.SortedFunc(maps.Keys(d.versions), func(a, b string) int {
		return cmp.Or(cmp.Compare(custom(d.versions[a]), custom(d.versions[b])), cmp.Compare(a, b))
	}) {
		v := d.versions[key].beside(definitions)
		for p, item := range v.paths() {
			out := map[string]any{}
			for method, op := range item.operations {
				out[method] = op.v2()
			}
			if len(item.parameters) > 0 {
				out["parameters"] = v2Parameters(item.parameters)
			}
			paths[p] = out
		}
		for name, s := range v.definitions() {
			kinds := kindsOf(s)
			if known := definitions[name]; known != nil { // such as DeleteOptions, which belongs to every group
				kinds = append(kindsOf(known), kinds...)
			}
			out := v2Schema(s)
			if preserves, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); preserves && len(kinds) > 0 {
				out = object(s.Description) // without properties, because kubectl would refuse all others
			}
			if len(kinds) > 0 {
				out.AddExtension(kindExtension, unique(kinds))
			}
			definitions[name] = out
		}
	}
	version := strings.TrimPrefix(d.options.Version, "v")
	return map[string]any{
		"swagger": "2.0", "info": map[string]any{"title": "Kubernetes", "version": version},
		"paths": paths, "definitions": definitions,
		"securityDefinitions": map[string]any{"BearerToken": map[string]any{
			"description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header",
		}},
		"security": []any{map[string]any{"BearerToken": []string{}}},
	}
}

// custom is 1 for a group version of custom kinds.
func custom(v *groupVersion) int {
	if v.resources[0].Type == nil {
		return 1
	}
	return 0
}

func kindsOf(s *spec.Schema) []any {
	kinds, _ := s.Extensions[kindExtension].([]any)
	return kinds
}

// unique drops repeated kinds.
func unique(kinds []any) []any {
	seen := map[string]bool{}
	var out []any
	for _, k := range kinds {
		raw, err := json.Marshal(k)
		if err == nil && !seen[string(raw)] {
			seen[string(raw)] = true
			out = append(out, k)
		}
	}
	return out
}

func v2Parameters(list []parameter) []any {
	var out []any
	for _, p := range list {
		entry := map[string]any{"name": p.name, "in": p.in, "description": p.description, "type": p.schemaType, "uniqueItems": true}
		if p.in == "path" {
			entry["required"] = true
		}
		out = append(out, entry)
	}
	return out
}

func (o *operation) v2() map[string]any {
	responses := map[string]any{"401": map[string]any{"description": "Unauthorized"}}
	for code, model := range o.answers {
		responses[code] = map[string]any{"description": statusText(code), "schema": map[string]any{"$ref": v2Prefix + model}}
	}
	out := o.common(responses)
	out["schemes"], out["produces"], out["consumes"] = []string{"https"}, o.produces, o.accepts
	if o.accepts == nil {
		out["consumes"] = []string{"*/*"}
	}
	parameters := v2Parameters(o.parameters)
	if o.body != "" {
		body := map[string]any{"name": "body", "in": "body", "schema": map[string]any{"$ref": v2Prefix + o.body}}
		if o.required {
			body["required"] = true
		}
		parameters = append([]any{body}, parameters...)
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	return out
}

// v2Schema copies a schema without what version 2 does not support: defaults, null,
// alternatives. A value of several types has no type.
func v2Schema(s *spec.Schema) *spec.Schema {
	out := *s
	out.Default, out.Nullable, out.AnyOf, out.OneOf, out.Not = nil, false, nil, nil, nil
	out.Extensions = maps.Clone(s.Extensions)
	preserves, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields")
	either, _ := s.Extensions.GetBool("x-kubernetes-int-or-string")
	if s.Nullable || preserves || either {
		out.Type, out.Properties, out.Items, out.AdditionalProperties, out.Required = nil, nil, nil, nil, nil
	}
	if len(s.OneOf) > 0 && len(s.Type) == 0 { // quantities and the like are strings
		out.Type = spec.StringOrArray{"string"}
	}
	if len(s.AllOf) == 1 && s.AllOf[0].Ref.String() != "" {
		out.Ref = spec.MustCreateRef(v2Prefix + strings.TrimPrefix(s.AllOf[0].Ref.String(), gotypes.RefPrefix))
	} else if ref := s.Ref.String(); ref != "" {
		out.Ref = spec.MustCreateRef(v2Prefix + strings.TrimPrefix(ref, gotypes.RefPrefix))
	}
	out.AllOf = nil
	if out.Properties != nil {
		out.Properties = make(map[string]spec.Schema, len(s.Properties))
		for name, p := range s.Properties {
			out.Properties[name] = *v2Schema(&p)
		}
	}
	if out.Items != nil && out.Items.Schema != nil {
		out.Items = &spec.SchemaOrArray{Schema: v2Schema(out.Items.Schema)}
	}
	if out.AdditionalProperties != nil && out.AdditionalProperties.Schema != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: v2Schema(out.AdditionalProperties.Schema)}
	}
	return &out
}
