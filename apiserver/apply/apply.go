// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply is server-side apply: it records in metadata.managedFields which
// manager set which field of an object, and merges applied configurations by these
// entries.
//
// A [FieldManager] serves one endpoint: the objects of a kind in one version, or their
// status subresource. It is built from the [Types] of the kind, which define how lists
// and maps merge:
//
//	types := apply.FromOpenAPI(func() map[string]*spec.Schema { ... })
//	widgets := apply.New(apply.Endpoint{Kind: widgetV1, Types: types})
//	obj, err = widgets.Update(ctx, live, obj, apply.ManagerName(options.FieldManager, userAgent))
//	obj, err = widgets.Apply(ctx, live, configuration, "my-controller", false)
//
// Nothing is parsed before the first write: types and managers are built on first use,
// so that creating them for a thousand kinds costs nothing.
//
// The merge is that of structured-merge-diff, composed as in kube-apiserver, so that
// conflicts, ownership and managedFields agree byte for byte. Most writes need only a
// part of it, which internal/fields computes without the library; tests compare the
// managedFields of both. Times in managedFields come from the clock of the process, in
// whole seconds.
package apply

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver/apply/internal/creation"
	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/doc"
)

// Object is an API object: a Go value or, for kinds without a Go type, a resource.Doc.
type Object = interface {
	runtime.Object
	metav1.Object
}

// Endpoint configures a [FieldManager]. Kind and Types are required.
type Endpoint struct {
	// Kind of the objects.
	Kind schema.GroupVersionKind

	// Types has the fields of the kind, in all versions.
	Types *Types

	// Subresource of the endpoint, such as "status"; empty for the object itself.
	Subresource string

	// Resets lists the fields that writes through this endpoint cannot change, by API
	// version such as "apps/v1": they are never attributed to the writer. nil: none.
	Resets map[string]*fieldpath.Set

	// Versions are the other API versions of the kind. managedFields entries in any
	// further version are dropped. nil: Kind is the only version.
	Versions []schema.GroupVersion

	// Convert returns an object in another of Versions; ctx is that of the write. The
	// object may be unstructured even if New is set. nil: versions differ in apiVersion alone.
	Convert func(ctx context.Context, obj Object, to schema.GroupVersion) (Object, error)

	// New returns an empty typed object; nil: objects have no Go type, and are a
	// resource.Doc.
	New func() Object
}

// FieldManager attributes the fields of the objects of one endpoint. It is safe for
// concurrent use.
type FieldManager struct {
	binding *binding
	// bind returns the library for a write.
	bind func(ctx context.Context) (*managedfields.FieldManager, error)
	// root is the type of the objects; nil if it is unknown.
	root func() *fields.Type
	// resets are the fields that writes cannot change; nil if they are unknown.
	resets func() *fields.Tree
	// creation computes the fields that new objects own; nil if the type does not allow
	// that in one pass.
	creation func() *creation.Creation
}

// New returns the manager of an endpoint.
func New(e Endpoint) *FieldManager {
	b := &binding{Endpoint: e}
	root, resets := sync.OnceValue(b.root), sync.OnceValue(b.resets)
	created := sync.OnceValue(func() *creation.Creation {
		if e.New == nil || resets() == nil {
			return nil
		}
		return creation.New(root(), e.New(), resets())
	})
	bind := b.library
	if e.Convert == nil { // the library of all writes is the same
		shared := sync.OnceValues(func() (*managedfields.FieldManager, error) { return b.library(context.Background()) })
		bind = func(context.Context) (*managedfields.FieldManager, error) { return shared() }
	}
	return &FieldManager{binding: b, root: root, resets: resets, creation: created, bind: bind}
}

// library returns the merge library with conversions in a context.
func (b *binding) library(ctx context.Context) (*managedfields.FieldManager, error) {
	var filters map[fieldpath.APIVersion]fieldpath.Filter
	if len(b.Resets) > 0 {
		filters = map[fieldpath.APIVersion]fieldpath.Filter{}
		for version, set := range b.Resets {
			filters[fieldpath.APIVersion(version)] = fieldpath.NewExcludeSetFilter(set)
		}
	}
	return managedfields.NewDefaultCRDFieldManager(b, conversions{b, ctx}, b, b, b.Kind, b.Kind.GroupVersion(), b.Subresource, filters)
}

// TypeConverter returns what merges objects of the endpoint by their type, without tracking
// who owns their fields.
func (m *FieldManager) TypeConverter() managedfields.TypeConverter { return m.binding }

// decoded returns an object as the library takes it: a copy, if it has no Go type.
func decoded(obj Object) Object {
	if d, ok := obj.(*doc.Doc); ok {
		return &unstructured.Unstructured{Object: d.Content()}
	}
	return obj
}

// typed converts the result of a merge with an applied configuration to the type of the
// endpoint's objects.
func (m *FieldManager) typed(obj runtime.Object, applied Object) (Object, error) {
	u, isUnstructured := obj.(*unstructured.Unstructured)
	switch {
	case !isUnstructured:
		return obj.(Object), nil
	case m.binding.Endpoint.New == nil:
		return doc.New(u.Object), nil
	}
	out := m.binding.Endpoint.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("failed to convert new object (%v/%v; %v) to proper version: unable to convert unstructured object to %v: %w",
			applied.GetNamespace(), applied.GetName(), applied.GetObjectKind().GroupVersionKind(), m.binding.Kind, err)
	}
	return out, nil
}

// binding adapts an endpoint to the merge library: it makes empty objects and applies no
// defaults.
type binding struct{ Endpoint }

// conversions converts between the versions of an endpoint for one write.
type conversions struct {
	*binding
	ctx context.Context // the library passes none
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (b conversions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	to, ok := target.(schema.GroupVersion)
	if !ok {
		return nil, fmt.Errorf("convert %s: unexpected target %v", b.Kind.Kind, target)
	}
	from := in.GetObjectKind().GroupVersionKind().GroupVersion()
	if from.Version == "" || from == to {
		return in, nil
	}
	if to != b.Kind.GroupVersion() && !slices.Contains(b.Versions, to) {
		return nil, runtime.NewNotRegisteredErrForKind("the versions of "+b.Kind.Kind, to.WithKind(b.Kind.Kind))
	}
	obj, ok := in.(Object)
	if !ok {
		return nil, fmt.Errorf("convert %s: %T is no API object", b.Kind.Kind, in)
	}
	u, isUnstructured := obj.(*unstructured.Unstructured)
	switch {
	case b.Endpoint.Convert == nil:
	case isUnstructured && b.Endpoint.New == nil:
		out, err := b.Endpoint.Convert(b.ctx, doc.New(u.Object), to)
		if err != nil {
			return nil, err
		}
		return decoded(out), nil
	default:
		return b.Endpoint.Convert(b.ctx, obj, to)
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(to.WithKind(b.Kind.Kind))
	return out, nil
}

// Convert implements runtime.ObjectConvertor; the merge does not call it.
func (conversions) Convert(_, _, _ any) error {
	return fmt.Errorf("conversion in place is not supported")
}

// ConvertFieldLabel implements runtime.ObjectConvertor; the merge does not call it.
func (conversions) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", fmt.Errorf("field labels are not supported")
}

// New implements runtime.ObjectCreater. An empty typed object may encode fields
// nevertheless; no manager must own them.
func (b *binding) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if b.Endpoint.New != nil {
		out := b.Endpoint.New()
		out.GetObjectKind().SetGroupVersionKind(kind)
		return out, nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// Default implements runtime.ObjectDefaulter. It does nothing: defaults are set after
// ownership was decided, and no manager owns them.
func (b *binding) Default(runtime.Object) {}
