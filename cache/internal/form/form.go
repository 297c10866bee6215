// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package form converts objects to the form in which a cache holds them (a Go type,
// unstructured, metadata alone, or encoded) and makes private copies of them. All else that
// it returns is shared.
package form

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
)

// Form is how the objects of an informer are held.
type Form uint8

const (
	Typed Form = iota
	Untyped
	Metadata
)

// FormOf is the form of an object or of the items of a list.
func FormOf(obj runtime.Object) Form {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return Metadata
	case runtime.Unstructured:
		return Untyped
	}
	return Typed
}

// Place is the identity of an informer.
type Place struct {
	GVK  schema.GroupVersionKind
	Form Form
}

// Covers are the forms that can answer for f, best first: metadata is part of
// every form. Go types and unstructured objects do not stand in for one
// another: a Go type knows fewer fields and more zero values.
func (f Form) Covers() []Form {
	if f == Metadata {
		return []Form{Metadata, Typed, Untyped}
	}
	return []Form{f}
}

// NewItem makes empty objects of the place.
func (p Place) NewItem(scheme *runtime.Scheme) (func() client.Object, error) {
	switch p.Form {
	case Metadata:
		return func() client.Object { return &metav1.PartialObjectMetadata{} }, nil
	case Untyped:
		return func() client.Object { return &unstructured.Unstructured{} }, nil
	}
	obj, err := scheme.New(p.GVK)
	if err != nil {
		return nil, fmt.Errorf("the scheme has no Go type of %s: %w", p.GVK, err)
	}
	if _, ok := obj.(client.Object); !ok {
		return nil, fmt.Errorf("%s: %T has no object metadata", p.GVK, obj)
	}
	t := reflect.TypeOf(obj).Elem()
	return func() client.Object { return reflect.New(t).Interface().(client.Object) }, nil
}

// CopyInto makes *to a private copy of shared.
func CopyInto(to, shared client.Object) error {
	if p, ok := shared.(*packed); ok {
		return p.copyInto(to)
	}
	if reflect.TypeOf(to) == reflect.TypeOf(shared) {
		set(to, shared.DeepCopyObject())
		return nil
	}
	m, ok := to.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("a cached %T cannot be read into a %T", shared, to)
	}
	part, err := metadataOf(shared)
	if err != nil {
		return err
	}
	part.DeepCopyInto(m)
	return nil
}

// set makes *to the object that from points to; both are of one type.
func set(to, from runtime.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
}

// CopyAll is CopyInto for the objects of a list.
func CopyAll(to, shared []client.Object) error {
	for i := range to {
		if err := CopyInto(to[i], shared[i]); err != nil {
			return err
		}
	}
	return nil
}

// metadataOf is the metadata of a shared object; it is shared as well.
func metadataOf(obj client.Object) (*metav1.PartialObjectMetadata, error) {
	out := &metav1.PartialObjectMetadata{}
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata:
		return o, nil
	case *unstructured.Unstructured:
		content, _ := o.Object["metadata"].(map[string]any)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &out.ObjectMeta); err != nil {
			return nil, fmt.Errorf("metadata of %s: %w", client.FormatKey(client.ObjectKeyFromObject(obj)), err)
		}
	case metav1.ObjectMetaAccessor:
		om, ok := o.GetObjectMeta().(*metav1.ObjectMeta)
		if !ok {
			return nil, fmt.Errorf("%T has no ObjectMeta", obj)
		}
		out.ObjectMeta = *om
	default:
		return nil, fmt.Errorf("%T has no ObjectMeta", obj)
	}
	out.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return out, nil
}

// Adapt is a private copy of obj, the result of a write, in the form of the
// place; ok is false when that would lose something.
func (p Place) Adapt(obj runtime.Object, newItem func() client.Object) (client.Object, bool) {
	o, ok := obj.(client.Object)
	if !ok {
		return nil, false
	}
	from := FormOf(obj)
	switch {
	case from == p.Form:
		out := o.DeepCopyObject().(client.Object)
		return out, reflect.TypeOf(out) == reflect.TypeOf(newItem())
	case p.Form == Metadata:
		part, err := metadataOf(o)
		if err != nil {
			return nil, false
		}
		return part.DeepCopy(), true
	case p.Form == Typed && from == Untyped:
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, false
		}
		out := newItem()
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.DeepCopy().Object, out) != nil {
			return nil, false
		}
		return out, true
	}
	return nil, false
}

// Sample is an object that says p.
func (p Place) Sample(scheme *runtime.Scheme) client.Object {
	switch p.Form {
	case Metadata:
		return client.NewMetadata(p.GVK)
	case Untyped:
		return client.NewUnstructured(p.GVK)
	}
	newItem, err := p.NewItem(scheme)
	if err != nil {
		return &metav1.PartialObjectMetadata{} // Informer explains
	}
	obj := newItem()
	obj.GetObjectKind().SetGroupVersionKind(p.GVK)
	return obj
}
