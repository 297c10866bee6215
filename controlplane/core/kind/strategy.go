// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"maps"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/declared"
)

// strategy holds the rules of a kind: what all kinds share, and the functions of
// the kind in between.
type strategy[T any, P Object[T]] struct {
	kind Definition[T, P]
	// trees of the type, worked out when an object is first written.
	trees func() fieldTrees
}

func (k Definition[T, P]) rules() *strategy[T, P] {
	return &strategy[T, P]{kind: k, trees: sync.OnceValue(func() fieldTrees { return treesOf(reflect.TypeFor[T]()) })}
}

// canonicalize is [resource.Version.Canonicalize].
func (s *strategy[T, P]) canonicalize(obj resource.Object) { s.trees().canonicalize(obj) }

// Normalize sets defaults. Unknown fields do not survive the decoder of a Go
// type, which reports them itself.
func (s *strategy[T, P]) Default(obj resource.Object) ([]string, error) {
	switch s.kind.Group {
	case "", "apps", "batch": // in other groups amounts keep what they say
		s.trees().round(obj)
	}
	if s.kind.Defaults != nil {
		s.kind.Defaults(obj.(P))
	}
	return nil, nil
}

// Prepare keeps status out of the hands of those who write the object, and
// counts the generation.
func (s *strategy[T, P]) Prepare(ctx context.Context, obj, old resource.Object) {
	current := obj.(P)
	var before P
	if old != nil {
		before = old.(P)
	}
	switch {
	case !s.kind.Status:
	case old != nil:
		part(current, "Status").Set(part(before, "Status"))
	case !s.kind.KeepsStatus:
		part(current, "Status").SetZero()
	}
	if old == nil && s.kind.InitialStatus != nil {
		s.kind.InitialStatus(current)
	}
	if s.kind.Prepare != nil {
		s.kind.Prepare(ctx, current, before)
	}
	switch {
	case !s.kind.Generations:
	case old == nil:
		obj.SetGeneration(1)
	case changed(current, before), s.kind.LabelsCount && !maps.Equal(obj.GetLabels(), old.GetLabels()):
		obj.SetGeneration(old.GetGeneration() + 1)
	default:
		obj.SetGeneration(old.GetGeneration())
	}
}

// Validate checks by the rules of the kind.
func (s *strategy[T, P]) Validate(_ context.Context, obj, old resource.Object) field.ErrorList {
	m := s.kind.Metadata
	errs := m.finalizers(obj, old, m.errors())
	if s.kind.Validate != nil {
		var before P
		if old != nil {
			before = old.(P)
		}
		errs = append(errs, s.kind.Validate(obj.(P), before)...)
	}
	return append(errs, declared.Of(reflect.TypeFor[T]()).Validate(obj, old)...)
}

// Warnings about an accepted object.
func (s *strategy[T, P]) Warnings(_ context.Context, obj, old resource.Object) []string {
	if s.kind.Warnings == nil {
		return nil
	}
	var before P
	if old != nil {
		before = old.(P)
	}
	return s.kind.Warnings(obj.(P), before)
}

// statusStrategy holds the rules of the status subresource: nothing but status
// and metadata changes.
type statusStrategy[T any, P Object[T]] struct{ *strategy[T, P] }

// Prepare takes everything but metadata and status from the old object.
func (s statusStrategy[T, P]) Prepare(ctx context.Context, obj, old resource.Object) {
	current, before := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
	for i := range current.NumField() {
		switch current.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
		default:
			current.Field(i).Set(before.Field(i))
		}
	}
	obj.SetGeneration(old.GetGeneration())
	for _, name := range s.kind.Metadata.keptInStatus() {
		switch name {
		case "labels":
			obj.SetLabels(old.GetLabels())
		case "annotations":
			obj.SetAnnotations(old.GetAnnotations())
		case "finalizers":
			obj.SetFinalizers(old.GetFinalizers())
		case "ownerReferences":
			obj.SetOwnerReferences(old.GetOwnerReferences())
		case "deletionTimestamp":
			obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
		}
	}
	if s.kind.Defaults != nil {
		s.kind.Defaults(obj.(P)) // again, as some follow from what only now is in it
	}
	if s.kind.PrepareStatus != nil {
		s.kind.PrepareStatus(ctx, obj.(P), old.(P))
	}
}

// Validate checks the status by the rules of the kind.
func (s statusStrategy[T, P]) Validate(_ context.Context, obj, old resource.Object) field.ErrorList {
	m := s.kind.Metadata
	errs := m.finalizers(obj, old, m.statusErrors())
	if s.kind.ValidateStatus != nil {
		errs = append(errs, s.kind.ValidateStatus(obj.(P), old.(P))...)
	}
	return append(errs, declared.Of(reflect.TypeFor[T]()).Validate(obj, old)...)
}

// Warnings implements resource.Strategy: those about an object are not about its
// status.
func (s statusStrategy[T, P]) Warnings(_ context.Context, obj, old resource.Object) []string {
	if s.kind.StatusWarnings == nil {
		return nil
	}
	return s.kind.StatusWarnings(obj.(P), old.(P))
}

// part returns a field of an object.
func part(obj resource.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// changed reports whether objects differ outside metadata and status.
func changed(a, b resource.Object) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		switch x.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
		default:
			if !equality.Semantic.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
				return true
			}
		}
	}
	return false
}
