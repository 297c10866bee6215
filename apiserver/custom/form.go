// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
)

// form converts between the content of objects in one version and the Go type of a kind.
type form[T resource.Object] struct {
	// load may keep the content.
	load func(content map[string]any) (T, error)
	save func(obj T) (map[string]any, error)
	// message returns an empty object of the Go type of the version; nil if that has no
	// protobuf form.
	message func() resource.Object
}

// marshaler is implemented by the types for which `steer generate` has written a protobuf form.
type marshaler interface {
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// newObject returns an empty object of a type, a pointer.
func newObject[T resource.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// messageOf returns the function that makes empty objects of a type, nil if it has no protobuf
// form.
func messageOf[T resource.Object]() func() resource.Object {
	if !reflect.TypeFor[T]().Implements(reflect.TypeFor[marshaler]()) {
		return nil
	}
	return emptyOf[T]
}

// Version is a version of a kind whose objects have a Go type of their own; [Spoke] makes
// it.
type Version[T resource.Object] struct {
	name string
	form func(apiVersion string) form[T]
}

// Spoke returns a version whose objects have the Go type S, and the functions that convert
// them to the type T of the kind and back. The functions return new objects. Metadata is
// copied if they leave the name of their result empty.
func Spoke[S, T resource.Object](version string, to func(S) (T, error), from func(T) (S, error)) Version[T] {
	return Version[T]{name: version, form: func(apiVersion string) form[T] {
		of := own[S](apiVersion)
		return form[T]{
			message: of.message,
			load: func(content map[string]any) (T, error) {
				var none T
				s, err := of.load(content)
				if err != nil {
					return none, err
				}
				t, err := to(s)
				if err != nil {
					return none, err
				}
				copyMetadata(s, t)
				return t, nil
			},
			save: func(obj T) (map[string]any, error) {
				s, err := from(obj)
				if err != nil {
					return nil, err
				}
				copyMetadata(obj, s)
				return of.save(s)
			},
		}
	}}
}

// own returns the form of a version whose objects are T but for apiVersion.
func own[T resource.Object](apiVersion string) form[T] {
	return form[T]{
		message: messageOf[T](),
		load: func(content map[string]any) (T, error) {
			obj := newObject[T]()
			if u, ok := resource.Object(obj).(*unstructured.Unstructured); ok {
				u.Object = content
				return obj, nil
			}
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
			return obj, err
		},
		save: func(obj T) (map[string]any, error) {
			kind := obj.GetObjectKind().GroupVersionKind().Kind
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			if err != nil {
				return nil, err
			}
			content["apiVersion"] = apiVersion
			if kind != "" {
				content["kind"] = kind
			}
			if metadata, ok := content["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
				delete(metadata, "creationTimestamp")
			}
			return content, nil
		},
	}
}

// copyMetadata copies the metadata of an object to one that has no name.
func copyMetadata(from, to resource.Object) {
	if to.GetName() != "" || to.GetGenerateName() != "" {
		return
	}
	source := reflect.ValueOf(from).Elem().FieldByName("ObjectMeta")
	target := reflect.ValueOf(to).Elem().FieldByName("ObjectMeta")
	if source.IsValid() && target.IsValid() && source.Type() == target.Type() {
		copied := from.DeepCopyObject()
		target.Set(reflect.ValueOf(copied).Elem().FieldByName("ObjectMeta"))
	}
}

// forms are those of all versions of a kind.
type forms[T resource.Object] struct {
	group, kind string
	of          map[string]form[T]
}

// convert is a [Converter].
func (f *forms[T]) convert(_ context.Context, objects []resource.Object, version string) ([]resource.Object, error) {
	out := make([]resource.Object, len(objects))
	for i, obj := range objects {
		d := obj.(*resource.Doc)
		gvk := d.GroupVersionKind()
		from, ok := f.of[gvk.Version]
		switch {
		case gvk.Version == version:
			out[i] = d
			continue
		case d.Len() == 2 && gvk.Kind != "": // field managers compare with an empty object
			out[i] = &resource.Doc{}
			out[i].GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: f.group, Version: version, Kind: gvk.Kind})
			continue
		case !ok:
			return nil, fmt.Errorf("convert %s %q: there is no version %q", f.kind, d.GetName(), gvk.Version)
		}
		t, err := from.load(d.Content())
		if err != nil {
			return nil, fmt.Errorf("convert %s %q from %s: %w", f.kind, d.GetName(), gvk.Version, err)
		}
		content, err := f.of[version].save(t)
		if err != nil {
			return nil, fmt.Errorf("convert %s %q to %s: %w", f.kind, d.GetName(), version, err)
		}
		content["kind"] = f.kind
		out[i] = resource.NewDoc(content)
	}
	return out, nil
}
