// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Action returns a subresource for [Kind.Subresources] that does something to an object:
// a POST of an In is answered with an Out. Both are Go types with TypeMeta and ObjectMeta,
// whose kinds have the names of the types, in the group version gv; bodies may leave the
// name of the object out. They are in discovery and OpenAPI.
//
// do may change obj, which is stored then if it has changed; it must not change its name
// and namespace, and is called again if obj was written meanwhile. The rules of the kind
// are not applied to the change. T is the Go type of the version that the request is in.
func Action[T, In, Out resource.Object](name string, gv schema.GroupVersion, do func(ctx context.Context, obj T, in In) (Out, error)) resource.Subresource {
	return resource.Subresource{
		Name: name,
		Kind: kindOf[In](gv), New: newOf[In],
		Answer: kindOf[Out](gv), NewAnswer: newOf[Out],
		Action: func(ctx context.Context, obj, body resource.Object) (resource.Object, error) {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok {
				return nil, fmt.Errorf("custom: the object is a %T, want an object of a definition", obj)
			}
			u.Object = resource.DecodedMembers(u.Object)
			f := own[T](u.GetAPIVersion())
			typed, err := f.load(u.Object)
			if err != nil {
				return nil, fmt.Errorf("custom: decode the object for %s: %w", name, err)
			}
			before, err := f.save(typed.DeepCopyObject().(T))
			if err != nil {
				return nil, err
			}
			out, err := do(ctx, typed, body.(In))
			if err != nil {
				return nil, err
			}
			after, err := f.save(typed)
			if err != nil {
				return nil, err
			}
			applyChanges(u.Object, before, after)
			return out, nil
		},
	}
}

// kindOf returns the kind with the name of a Go type.
func kindOf[T resource.Object](gv schema.GroupVersion) schema.GroupVersionKind {
	return gv.WithKind(reflect.TypeFor[T]().Elem().Name())
}

func newOf[T resource.Object]() resource.Object {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(resource.Object)
}
