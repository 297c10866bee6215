// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Action returns a subresource for [Kind.Subresources] that does something to an object:
// a POST of an In is answered with an Out. Both are Go types with TypeMeta and ObjectMeta,
// whose kinds have the names of the types, in the group version gv; bodies may leave the
// name of the object out. They are in discovery and OpenAPI. T is the Go type of the kind,
// whatever the version of the request is.
//
// do may change obj, the status included, but not its name and namespace. A change gets
// defaults, is validated by the schema and the rules of the kind, and counts the generation
// if it is not of metadata or status alone; Prepare and PrepareStatus are not called. It has
// managedFields. do is called again if obj was written meanwhile, and once for a dry run, which
// DryRun of [resource.RequestFrom] reports: what it does elsewhere must bear the one and
// heed the other. An error of do that is not an API status is answered with 500.
func Action[T, In, Out resource.Object](name string, gv schema.GroupVersion, do func(ctx context.Context, obj T, in In) (Out, error)) resource.Subresource {
	return resource.Subresource{
		Name: name,
		Kind: kindOf[In](gv), New: emptyOf[In],
		Answer: kindOf[Out](gv), NewAnswer: emptyOf[Out],
		Action: func(ctx context.Context, obj, body resource.Object) (resource.Object, error) {
			d, ok := obj.(*resource.Doc)
			if !ok {
				return nil, fmt.Errorf("custom: the object is a %T, want an object of a definition", obj)
			}
			f := own[T](d.GetAPIVersion())
			typed, err := f.load(d.Content())
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
			content := d.Content()
			applyChanges(content, before, after)
			d.SetContent(content)
			return out, nil
		},
	}
}

// actionStrategy holds the rules for what an action changes.
type actionStrategy struct{ *strategy }

var _ resource.Strategy = actionStrategy{}

// Prepare counts the generation.
func (s actionStrategy) Prepare(_ context.Context, obj, old resource.Object) {
	d, before := obj.(*resource.Doc), old.(*resource.Doc)
	if s.hasStatus {
		d = d.Copy()
		d.SetMember("status", before.Member("status"))
	}
	if !d.EqualBeyondMetadata(before) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// Validate applies the rules of the object, and those in Go of its status if that changes.
// An object that is not changed is not validated.
func (s actionStrategy) Validate(ctx context.Context, obj, old resource.Object) field.ErrorList {
	d, before := obj.(*resource.Doc), old.(*resource.Doc)
	if d.EqualBeyondMetadata(before) {
		return nil
	}
	errs := s.strategy.Validate(ctx, obj, old)
	if len(errs) > 0 || s.hooks == nil || !s.hasStatus || d.Member("status").Equal(before.Member("status")) {
		return errs
	}
	return s.hooks.validate(ctx, d, before, true)
}

// kindOf returns the kind with the name of a Go type.
func kindOf[T resource.Object](gv schema.GroupVersion) schema.GroupVersionKind {
	return gv.WithKind(reflect.TypeFor[T]().Elem().Name())
}

// emptyOf is [newObject] as a resource has it.
func emptyOf[T resource.Object]() resource.Object { return newObject[T]() }
