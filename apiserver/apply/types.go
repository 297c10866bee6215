// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/doc"
)

// Types has the fields of one or more kinds: which lists merge by key, which maps are
// atomic. It is safe for concurrent use and meant to be shared by all endpoints of a
// kind, or of a group.
type Types struct {
	build func() (managedfields.TypeConverter, error)
}

// FromOpenAPI returns the types of OpenAPI v3 schemas by definition name. Schemas that
// carry x-kubernetes-group-version-kind are kinds; they refer to the others.
// definitions is called once, at the first write, and must contain everything it refers
// to ([ObjectMeta] is the schema of metadata).
func FromOpenAPI(definitions func() map[string]*spec.Schema) *Types {
	return &Types{build: sync.OnceValues(func() (managedfields.TypeConverter, error) {
		c, err := managedfields.NewTypeConverter(definitions(), false)
		if err != nil {
			return nil, fmt.Errorf("types for apply: %w", err)
		}
		return c, nil
	})}
}

// Deduced derives the types from the objects themselves: maps merge, lists are atomic.
// It is for kinds without a schema.
func Deduced() *Types {
	return &Types{build: func() (managedfields.TypeConverter, error) {
		return managedfields.NewDeducedTypeConverter(), nil
	}}
}

// root returns the type of the objects of an endpoint; nil if it is unknown.
func (b *binding) root() *fields.Type {
	converter, err := b.Types.build()
	if err != nil {
		return nil
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(b.Kind)
	value, err := converter.ObjectToTyped(empty)
	if err != nil {
		return nil
	}
	return fields.Compile(value.Schema(), value.TypeRef())
}

// resets returns the fields that writes through an endpoint cannot change; nil if they
// are unknown.
func (b *binding) resets() *fields.Tree {
	set := b.Resets[b.Kind.GroupVersion().String()]
	if set == nil || set.Empty() {
		return fields.None()
	}
	text, err := set.ToJSON()
	if err != nil {
		return nil
	}
	if names, ok := fields.ReadText(string(text)); ok {
		return names
	}
	return nil
}

// ObjectToTyped implements managedfields.TypeConverter. Typed objects are converted to
// JSON, with the kind set if it is missing.
func (b *binding) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	converter, err := b.Types.build()
	if err != nil {
		return nil, err
	}
	switch o := obj.(type) {
	case *unstructured.Unstructured:
	case *doc.Doc:
		obj = decoded(o)
	default:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: content}
		if u.GetKind() == "" {
			u.SetGroupVersionKind(b.Kind)
		}
		obj = u
	}
	return converter.ObjectToTyped(obj, options...)
}

// TypedToObject implements managedfields.TypeConverter.
func (b *binding) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no object", b.Kind.Kind)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// ObjectMetaName is the definition name of [ObjectMeta].
const ObjectMetaName = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// Kind prepares the schema of a custom resource for [FromOpenAPI]: it adds the group,
// version and kind, and refers to [ObjectMeta] for metadata, also in embedded objects.
// The schema is not changed.
func Kind(kind schema.GroupVersionKind, s *spec.Schema) *spec.Schema {
	out := embedMeta(s, true)
	out.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
		"group": kind.Group, "version": kind.Version, "kind": kind.Kind,
	}})
	return out
}

// embedMeta returns a copy of the schema with the properties of an object where it
// describes one.
func embedMeta(s *spec.Schema, isObject bool) *spec.Schema {
	out := *s
	out.Extensions = make(spec.Extensions, len(s.Extensions)+1)
	for k, v := range s.Extensions {
		out.Extensions[k] = v
	}
	if s.Properties != nil || isObject {
		out.Properties = make(map[string]spec.Schema, len(s.Properties)+3)
		for name, p := range s.Properties {
			out.Properties[name] = *embedMeta(&p, false)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		out.Items = &spec.SchemaOrArray{Schema: embedMeta(s.Items.Schema, false)}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: embedMeta(s.AdditionalProperties.Schema, false)}
	}
	if embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded || isObject {
		if out.Properties == nil {
			out.Properties = map[string]spec.Schema{}
		}
		out.Properties["apiVersion"] = *spec.StringProperty()
		out.Properties["kind"] = *spec.StringProperty()
		out.Properties["metadata"] = *spec.RefSchema("#/components/schemas/" + ObjectMetaName)
	}
	return &out
}

// ObjectMeta is the schema of metadata as far as merging needs it.
func ObjectMeta() *spec.Schema {
	text := func() *spec.Schema { return spec.StringProperty() }
	texts := func() *spec.Schema { return spec.MapProperty(spec.StringProperty()) }
	time := func() *spec.Schema { return spec.DateTimeProperty() }
	number := func() *spec.Schema { return spec.Int64Property() }
	object := func(properties map[string]*spec.Schema) *spec.Schema {
		s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: map[string]spec.Schema{}}}
		for name, p := range properties {
			s.Properties[name] = *p
		}
		return s
	}
	list := func(items *spec.Schema, listType string, keys ...any) *spec.Schema {
		s := spec.ArrayProperty(items)
		s.AddExtension("x-kubernetes-list-type", listType)
		if len(keys) > 0 {
			s.AddExtension("x-kubernetes-list-map-keys", keys)
		}
		return s
	}
	owner := object(map[string]*spec.Schema{
		"apiVersion": text(), "kind": text(), "name": text(), "uid": text(),
		"controller": spec.BooleanProperty(), "blockOwnerDeletion": spec.BooleanProperty(),
	})
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	return object(map[string]*spec.Schema{
		"name": text(), "generateName": text(), "namespace": text(), "selfLink": text(), "uid": text(),
		"resourceVersion": text(), "generation": number(),
		"creationTimestamp": time(), "deletionTimestamp": time(), "deletionGracePeriodSeconds": number(),
		"labels": texts(), "annotations": texts(),
		"ownerReferences": list(owner, "map", "uid"),
		"finalizers":      list(text(), "set"),
		"managedFields": list(object(map[string]*spec.Schema{
			"manager": text(), "operation": text(), "apiVersion": text(), "time": time(),
			"fieldsType": text(), "fieldsV1": object(nil), "subresource": text(),
		}), "atomic"),
	})
}
