// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/clone"
	"github.com/steer-dev/steer/client"
)

// form is how the objects of an informer are held.
type form uint8

const (
	typed form = iota
	untyped
	metadata
)

func formOf(obj runtime.Object) form {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadata
	case runtime.Unstructured:
		return untyped
	}
	return typed
}

// place is the identity of an informer.
type place struct {
	gvk  schema.GroupVersionKind
	form form
}

// covers are the forms that can answer for f, best first: metadata is part of
// every form. Go types and unstructured objects do not stand in for one
// another: a Go type knows fewer fields and more zero values.
func (f form) covers() []form {
	if f == metadata {
		return []form{metadata, typed, untyped}
	}
	return []form{f}
}

// newItem makes empty objects of the place.
func (p place) newItem(scheme *runtime.Scheme) (func() client.Object, error) {
	switch p.form {
	case metadata:
		return func() client.Object { return &metav1.PartialObjectMetadata{} }, nil
	case untyped:
		return func() client.Object { return &unstructured.Unstructured{} }, nil
	}
	obj, err := client.NewObject(scheme, p.gvk)
	if err != nil {
		return nil, err
	}
	t := reflect.TypeOf(obj).Elem()
	return func() client.Object { return reflect.New(t).Interface().(client.Object) }, nil
}

// copyInto makes *to a private copy of shared.
func copyInto(to, shared client.Object) error {
	if p, ok := shared.(*packed); ok {
		return p.copyInto(to)
	}
	if reflect.TypeOf(to) == reflect.TypeOf(shared) {
		clone.Into(to, shared)
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
	clone.Into(m, part)
	return nil
}

// copyAll is copyInto for the objects of a list.
func copyAll(to, shared []client.Object) error {
	alike := true
	for i := range to {
		alike = alike && reflect.TypeOf(to[i]) == reflect.TypeOf(shared[i]) && reflect.TypeOf(to[i]) == reflect.TypeOf(to[0])
	}
	if alike {
		clone.All(to, shared)
		return nil
	}
	for i := range to {
		if err := copyInto(to[i], shared[i]); err != nil {
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
			return nil, fmt.Errorf("metadata of %s: %w", client.ObjectKeyFromObject(obj), err)
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

// adapt is a private copy of obj, the result of a write, in the form of the
// place; ok is false when that would lose something.
func (p place) adapt(obj runtime.Object, newItem func() client.Object) (client.Object, bool) {
	o, ok := obj.(client.Object)
	if !ok {
		return nil, false
	}
	from := formOf(obj)
	switch {
	case from == p.form:
		out := clone.Of(o)
		return out, reflect.TypeOf(out) == reflect.TypeOf(newItem())
	case p.form == metadata:
		part, err := metadataOf(o)
		if err != nil {
			return nil, false
		}
		return clone.Of(part), true
	case p.form == typed && from == untyped:
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
