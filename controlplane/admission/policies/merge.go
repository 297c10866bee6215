// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
)

// merge returns an object with an applied configuration merged into it, by their type. The
// configuration may not have lists, maps or structs that are replaced as a whole: what it
// does not mention would be lost. Errors are in the words of kube-apiserver.
func merge(types managedfields.TypeConverter, before runtime.Object, configuration *unstructured.Unstructured) (map[string]any, error) {
	applied, err := types.ObjectToTyped(configuration)
	if err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if atomic := atomics(nil, applied.Schema(), applied.TypeRef(), applied.AsValue()); len(atomic) > 0 {
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %v", strings.Join(atomic, ", "))
	}
	if d, custom := before.(*resource.Doc); custom {
		before = &unstructured.Unstructured{Object: d.Content()}
	}
	live, err := types.ObjectToTyped(before, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("failed to convert original object to typed object: %w", err)
	}
	merged, err := live.Merge(applied)
	if err != nil {
		return nil, fmt.Errorf("failed to merge patch: %w", err)
	}
	out, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, errors.New("failed to convert typed object to object: it is no object")
	}
	return out, nil
}

// atomics returns the paths of values that are replaced as a whole.
func atomics(path []fieldpath.PathElement, s *schema.Schema, of schema.TypeRef, v value.Value) []string {
	atom, known := s.Resolve(of)
	if !known {
		return nil
	}
	var out []string
	if v.IsMap() && atom.Map != nil {
		if atom.Map.ElementRelationship == schema.Atomic {
			out = append(out, fieldpath.Path(path).String())
		}
		v.AsMap().Iterate(func(name string, member value.Value) bool {
			if field, ok := atom.Map.FindField(name); ok {
				out = append(out, atomics(append(slices.Clip(path), fieldpath.PathElement{FieldName: &name}), s, field.Type, member)...)
			}
			return true
		})
	}
	if v.IsList() && atom.List != nil {
		if atom.List.ElementRelationship == schema.Atomic {
			out = append(out, fieldpath.Path(path).String())
		}
		list := v.AsList()
		for i := range list.Length() {
			out = append(out, atomics(append(slices.Clip(path), fieldpath.PathElement{Index: &i}), s, atom.List.ElementType, list.At(i))...)
		}
	}
	return out
}

// converters find the types by which objects are merged. The zero value is ready.
type converters struct {
	// bodies are those of kinds that are not stored, by kind.
	bodies sync.Map // of schema.GroupVersionKind to managedfields.TypeConverter
}

// typesOwner is an ownership that merges by type.
type typesOwner interface {
	TypeConverter() managedfields.TypeConverter
}

// of returns the types for the object of a write in a version.
func (c *converters) of(q *match.Request, form *match.Form) managedfields.TypeConverter {
	kind := form.Kind
	if owner, ok := ownership(q, kind).(typesOwner); ok {
		return owner.TypeConverter()
	}
	if known, ok := c.bodies.Load(kind); ok {
		return known.(managedfields.TypeConverter)
	}
	if _, custom := form.Object.(*resource.Doc); custom {
		return managedfields.NewDeducedTypeConverter()
	}
	t := reflect.TypeOf(form.Object).Elem()
	manager := apply.New(apply.Endpoint{Kind: kind, Types: apply.FromOpenAPI(func() map[string]*spec.Schema { return described(kind, t) })})
	known, _ := c.bodies.LoadOrStore(kind, manager.TypeConverter())
	return known.(managedfields.TypeConverter)
}

func described(kind apischema.GroupVersionKind, t reflect.Type) map[string]*spec.Schema {
	definitions := gotypes.Definitions(gotypes.Kubernetes(), t)
	definitions[gotypes.Name(t)].AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
		"group": kind.Group, "version": kind.Version, "kind": kind.Kind,
	}})
	return definitions
}

// ownership is that of the resource or subresource of a write in a version; nil if there
// is none.
func ownership(q *match.Request, kind apischema.GroupVersionKind) resource.FieldManager {
	v := q.ServedAs(kind)
	if v == nil {
		return nil
	}
	if q.Subresource == "" {
		return v.FieldManager
	}
	if s := v.Subresource(q.Subresource); s != nil {
		return s.FieldManager
	}
	return nil
}
