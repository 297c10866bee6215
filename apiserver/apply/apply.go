// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply keeps track of who set which field of an object, in
// metadata.managedFields, and merges applied configurations by that record:
// server-side apply.
//
// A [Manager] serves one endpoint: the objects of a kind in one version, or their
// status subresource. It is built from the [Types] of the kind, which say how
// lists and maps merge:
//
//	types := apply.FromOpenAPI(func() map[string]*spec.Schema { ... })
//	widgets := apply.New(apply.Endpoint{Kind: widgetV1, Types: types})
//	obj, err = widgets.Update(live, obj, apply.ManagerName(options.FieldManager, userAgent))
//	obj, err = widgets.Apply(live, configuration, "my-controller", false)
//
// Nothing is parsed before the first write: types and managers build themselves
// when first used, so that making them for a thousand kinds costs nothing.
//
// The merge itself is structured-merge-diff in the composition that API servers
// use, so that conflicts, ownership and the record agree byte for byte. What most
// writes need of it is worked out without it, in internal/fields, and tests hold
// the two to the same records. Times in the record come from the clock of the
// process, in whole seconds.
package apply

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
)

// Object is an API object, typed or unstructured.
type Object = interface {
	runtime.Object
	metav1.Object
}

// Endpoint says what a [Manager] is for. Kind and Types are required.
type Endpoint struct {
	// Kind of the objects as they come and go.
	Kind schema.GroupVersionKind

	// Types knows the fields of the kind, in all versions.
	Types *Types

	// Subresource of the endpoint, such as "status"; empty for the object itself.
	Subresource string

	// Resets lists the fields that writes through this endpoint cannot change,
	// whoever sends them, by API version such as "apps/v1": they are never
	// attributed to the writer. nil: none.
	Resets map[string]*fieldpath.Set

	// Versions are the other API versions of the kind. Entries of the record in
	// any further version are dropped. nil: Kind is the only version.
	Versions []schema.GroupVersion

	// Convert returns an object in another of Versions. The object may be
	// unstructured even if New is set. nil: versions differ in apiVersion alone.
	Convert func(obj Object, to schema.GroupVersion) (Object, error)

	// Frozen tells that unstructured objects may have their record, which is made here,
	// in frozen form.
	Frozen bool

	// New returns an empty typed object; nil: objects are unstructured.
	New func() Object
}

// Manager attributes the fields of the objects of one endpoint. It is safe for
// concurrent use.
type Manager struct {
	binding *binding
	library func() (*managedfields.FieldManager, error)
	// root is the type of the objects; nil when it is not known.
	root func() *fields.Type
	// resets are the fields that writes cannot change; nil when they are not known.
	resets func() *fields.Tree
	// creation tells what new objects own; nil when that is not known of the type.
	creation func() *fields.Creation
	outcomes outcomes
}

// New returns the manager of an endpoint.
func New(e Endpoint) *Manager {
	b := &binding{Endpoint: e}
	root, resets := sync.OnceValue(b.root), sync.OnceValue(b.resets)
	creation := sync.OnceValue(func() *fields.Creation {
		if e.New == nil || resets() == nil {
			return nil
		}
		return fields.NewCreation(root(), reflect.TypeOf(e.New()).Elem(), resets())
	})
	return &Manager{binding: b, root: root, resets: resets, creation: creation, library: sync.OnceValues(func() (*managedfields.FieldManager, error) {
		var filters map[fieldpath.APIVersion]fieldpath.Filter
		if len(e.Resets) > 0 {
			filters = map[fieldpath.APIVersion]fieldpath.Filter{}
			for version, set := range e.Resets {
				filters[fieldpath.APIVersion(version)] = fieldpath.NewExcludeSetFilter(set)
			}
		}
		return managedfields.NewDefaultCRDFieldManager(b, b, b, b, e.Kind, e.Kind.GroupVersion(), e.Subresource, filters)
	})}
}

// inOneVersion reports whether an object and its record are in the version of the
// endpoint.
func (m *Manager) inOneVersion(obj Object) bool {
	own := m.binding.Kind.GroupVersion()
	if version := obj.GetObjectKind().GroupVersionKind().GroupVersion(); version != own && !version.Empty() {
		return false
	}
	if entries, has, ok := rawRecord(obj); has && ok {
		for _, entry := range entries {
			if entry, ok := entry.(map[string]any); !ok || entry["apiVersion"] != own.String() {
				return false
			}
		}
		return true
	}
	for _, entry := range obj.GetManagedFields() {
		if entry.APIVersion != own.String() {
			return false
		}
	}
	return true
}

// typed turns what the merge with an applied configuration returns into the form in
// which objects are used.
func (m *Manager) typed(obj runtime.Object, applied Object) (Object, error) {
	u, isUnstructured := obj.(*unstructured.Unstructured)
	if !isUnstructured || m.binding.Endpoint.New == nil {
		return obj.(Object), nil
	}
	out := m.binding.Endpoint.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("failed to convert new object (%v/%v; %v) to proper version: unable to convert unstructured object to %v: %w",
			applied.GetNamespace(), applied.GetName(), applied.GetObjectKind().GroupVersionKind(), m.binding.Kind, err)
	}
	return out, nil
}

// binding shows an endpoint to the merge library: it converts between versions,
// makes empty objects and (not) defaults.
type binding struct{ Endpoint }

// ConvertToVersion implements runtime.ObjectConvertor.
func (b *binding) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
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
	if b.Endpoint.Convert != nil {
		return b.Endpoint.Convert(obj, to)
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(to.WithKind(b.Kind.Kind))
	return out, nil
}

// Convert implements runtime.ObjectConvertor; the merge has no use for it.
func (b *binding) Convert(_, _, _ any) error {
	return fmt.Errorf("conversion in place is not supported")
}

// ConvertFieldLabel implements runtime.ObjectConvertor; the merge has no use for it.
func (b *binding) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", fmt.Errorf("field labels are not supported")
}

// New implements runtime.ObjectCreater. An empty typed object has fields all the
// same, which nobody shall be said to have set.
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

// Default implements runtime.ObjectDefaulter. Defaults are set by whoever stores
// the result, after ownership was decided: nobody owns a default.
func (b *binding) Default(runtime.Object) {}
