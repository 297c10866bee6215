// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gotypes builds OpenAPI v3 definitions of Go API types, by reflection and on
// demand: nothing is generated, embedded or parsed per type.
//
// Most of a definition is in the type itself: JSON tags, patch strategies, and the
// descriptions in SwaggerDoc methods. Markers in comments (list types and keys,
// defaults, enumerations) are in markers.txt, which the command in the folder extract
// writes for the built-in types of Kubernetes. Types of other packages may have
// [Markers] of their own.
package gotypes

//go:generate go run ./extract k8s.io/api/admission/v1 k8s.io/api/admissionregistration/v1 k8s.io/api/apps/v1 k8s.io/api/authentication/v1 k8s.io/api/authorization/v1 k8s.io/api/autoscaling/v1 k8s.io/api/autoscaling/v2 k8s.io/api/batch/v1 k8s.io/api/certificates/v1 k8s.io/api/coordination/v1 k8s.io/api/core/v1 k8s.io/api/discovery/v1 k8s.io/api/events/v1 k8s.io/api/flowcontrol/v1 k8s.io/api/networking/v1 k8s.io/api/node/v1 k8s.io/api/policy/v1 k8s.io/api/rbac/v1 k8s.io/api/resource/v1 k8s.io/api/scheduling/v1 k8s.io/api/storage/v1 k8s.io/api/storagemigration/v1 k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/util/intstr k8s.io/apimachinery/pkg/api/resource k8s.io/kube-aggregator/pkg/apis/apiregistration/v1

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// RefPrefix precedes the name of a definition in references.
const RefPrefix = "#/components/schemas/"

// Name returns the definition name of a type, such as "io.k8s.api.core.v1.Pod".
func Name(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if m, ok := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return m.OpenAPIModelName()
	}
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	slices.Reverse(host)
	return strings.Join(append(append(host, path[1:]...), t.Name()), ".")
}

// Definitions returns the definitions of the given struct types, and of all types that
// they use, by name. The caller owns the result.
func Definitions(markers Markers, types ...reflect.Type) map[string]*spec.Schema {
	b := builder{markers: markers, definitions: map[string]*spec.Schema{}}
	for _, t := range types {
		b.reference(t)
	}
	return b.definitions
}

type builder struct {
	markers     Markers
	definitions map[string]*spec.Schema
}

// schema returns the schema of a type where it is used: that of the type itself, or a
// reference to the definition of a struct.
func (b *builder) schema(t reflect.Type) *spec.Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return b.schema(t.Elem())
	case reflect.Struct:
		return b.reference(t)
	case reflect.Map:
		out := typed("object", "")
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: b.schema(t.Elem())}
		return out
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return typed("string", "byte")
		}
		out := typed("array", "")
		out.Items = &spec.SchemaOrArray{Schema: b.schema(t.Elem())}
		return out
	case reflect.Interface:
		return typed("object", "")
	default:
		out := scalar(t.Kind())
		for _, value := range b.markers.of(t, "").enum {
			out.Enum = append(out.Enum, value)
		}
		return out
	}
}

// scalar returns the schema of scalar kinds.
func scalar(k reflect.Kind) *spec.Schema {
	switch k {
	case reflect.Bool:
		return typed("boolean", "")
	case reflect.String:
		return typed("string", "")
	case reflect.Int64, reflect.Uint64:
		return typed("integer", "int64")
	case reflect.Float32:
		return typed("number", "float")
	case reflect.Float64:
		return typed("number", "double")
	case reflect.Uint8:
		return typed("integer", "byte")
	default: // the remaining integers
		return typed("integer", "int32")
	}
}

func typed(name, format string) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{name}, Format: format}}
}

// zero returns the default that a value of the type has in JSON, if any.
func zero(t reflect.Type) any {
	switch t.Kind() {
	case reflect.Struct:
		if t.Implements(reflect.TypeFor[custom]()) || t == reflect.TypeFor[runtime.RawExtension]() {
			return nil // not objects in JSON, or any object
		}
		return map[string]any{}
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Array:
		return nil
	default:
		return 0
	}
}

// custom is implemented by types whose JSON is not that of a struct, such as times and
// quantities.
type custom interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// reference returns a reference to the definition of a struct, which it builds if
// needed.
func (b *builder) reference(t reflect.Type) *spec.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := Name(t)
	if b.definitions[name] == nil {
		if c, ok := reflect.Zero(t).Interface().(custom); ok {
			b.definitions[name] = opaque(c)
		} else {
			out := typed("object", "")
			b.definitions[name] = out // before its fields, because types may be recursive
			out.Description = docs(t)[""]
			b.fields(out, t)
		}
		b.definitions[name].Description = docs(t)[""]
		b.markers.of(t, "").extend(b.definitions[name])
	}
	return spec.RefSchema(RefPrefix + name)
}

func opaque(c custom) *spec.Schema {
	out := &spec.Schema{SchemaProps: spec.SchemaProps{Type: c.OpenAPISchemaType(), Format: c.OpenAPISchemaFormat()}}
	if o, ok := c.(interface{ OpenAPIV3OneOfTypes() []string }); ok {
		out.Type = nil
		for _, name := range o.OpenAPIV3OneOfTypes() {
			out.OneOf = append(out.OneOf, *typed(name, ""))
		}
	}
	return out
}

// fields adds the fields of a struct to its definition, including those of embedded
// structs.
func (b *builder) fields(out *spec.Schema, t reflect.Type) {
	descriptions := docs(t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && name == "" {
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			b.fields(out, embedded)
			continue
		}
		if name == "" {
			name = f.Name
		}
		m := b.markers.of(t, name)
		omitted := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		p := b.property(f, m, omitted)
		p.Description = descriptions[name]
		out.SetProperty(name, *p)
		if m.required || !omitted && !m.optional {
			out.Required = append(out.Required, name)
		}
	}
}

// property returns the schema of a field.
func (b *builder) property(f reflect.StructField, m marker, omitted bool) *spec.Schema {
	p := b.schema(f.Type)
	switch {
	case m.defaultValue != nil:
		p.Default = m.defaultValue
	case f.Type.Kind() == reflect.Struct || !omitted:
		p.Default = zero(f.Type)
	}
	if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
		p.AddExtension("x-kubernetes-patch-strategy", strategy)
	}
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		p.AddExtension("x-kubernetes-patch-merge-key", key)
	}
	m.extend(p)
	if ref := p.Ref.String(); ref != "" { // siblings of a $ref are ignored, so it is wrapped
		p.Ref = spec.Ref{}
		p.AllOf = []spec.Schema{*spec.RefSchema(ref)}
	}
	return p
}

// docs returns the descriptions of a type and, by JSON name, of its fields.
func docs(t reflect.Type) map[string]string {
	if d, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return d.SwaggerDoc()
	}
	return nil
}
