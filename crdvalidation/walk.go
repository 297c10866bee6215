// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"iter"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// schemas yields the top-level schema and those of the versions.
func schemas(spec *apiextensions.CustomResourceDefinitionSpec) iter.Seq[*apiextensions.JSONSchemaProps] {
	return func(yield func(*apiextensions.JSONSchemaProps) bool) {
		if hasSchema(spec.Validation) && !yield(spec.Validation.OpenAPIV3Schema) {
			return
		}
		for i := range spec.Versions {
			if s := spec.Versions[i].Schema; hasSchema(s) && !yield(s.OpenAPIV3Schema) {
				return
			}
		}
	}
}

// walk calls see for a schema and every schema in it, in no particular order.
func walk(s *apiextensions.JSONSchemaProps, see func(*apiextensions.JSONSchemaProps)) {
	if s == nil {
		return
	}
	see(s)
	if s.Items != nil {
		walk(s.Items.Schema, see)
		walkList(s.Items.JSONSchemas, see)
	}
	walkList(s.AllOf, see)
	walkList(s.AnyOf, see)
	walkList(s.OneOf, see)
	walk(s.Not, see)
	walkTable(s.Properties, see)
	walkTable(s.PatternProperties, see)
	walkTable(s.Definitions, see)
	for _, more := range []*apiextensions.JSONSchemaPropsOrBool{s.AdditionalProperties, s.AdditionalItems} {
		if more != nil {
			walk(more.Schema, see)
		}
	}
	for _, d := range s.Dependencies {
		walk(d.Schema, see)
	}
}

func walkList(list []apiextensions.JSONSchemaProps, see func(*apiextensions.JSONSchemaProps)) {
	for i := range list {
		walk(&list[i], see)
	}
}

func walkTable(table map[string]apiextensions.JSONSchemaProps, see func(*apiextensions.JSONSchemaProps)) {
	for _, s := range table {
		walk(&s, see)
	}
}
