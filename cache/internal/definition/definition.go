// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition says what reads of a cached kind may return: which objects, in which
// state and form. It is the same for what a watch has delivered, for own writes, and for
// answers of the server, which it reads.
package definition

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/client"
)

// Options say what is held of a kind.
type Options struct {
	// Namespaces that are watched; none means all.
	Namespaces []string
	// Labels and Fields select what is watched; nil means everything.
	Labels labels.Selector
	Fields fields.Selector
	// Transform changes an object before it is kept; nil leaves it as it is.
	Transform func(client.Object) (client.Object, error)
	// ManagedFields keeps metadata.managedFields.
	ManagedFields bool
}

// Definition is that of one kind in one form. Each informer has one; a kind without an
// informer has the one that its informer would have.
type Definition struct {
	Place form.Place
	Options
	// NewItem makes empty objects in the form of the place.
	NewItem func() client.Object
	// Client has the scheme and the mapper.
	Client client.Client
	// Indexes are those of the place, by field.
	Indexes func() map[string]func(client.Object) []string
}

// Watches reports whether namespace is part of what is watched. A list of all
// namespaces by a cache of some gives what those hold.
func (d *Definition) Watches(namespace string) bool {
	return namespace == "" || len(d.Namespaces) == 0 || slices.Contains(d.Namespaces, namespace)
}

// namespaces are those whose objects a list of namespace gives, "" if that is all of them.
func (d *Definition) namespaces(ctx context.Context, namespace string) ([]string, error) {
	if namespace != "" || len(d.Namespaces) == 0 {
		return []string{namespace}, nil
	}
	r, err := d.Client.Mapper().ForKind(ctx, d.Place.GVK)
	if err != nil {
		return nil, err
	}
	if !r.Namespaced {
		return []string{""}, nil
	}
	return d.Namespaces, nil
}

// Verdict says whether an object is part of what is watched.
type Verdict uint8

const (
	Selected Verdict = iota
	Rejected
	Unclear // only the server knows
)

// Selects reports whether obj is part of what is watched.
func (d *Definition) Selects(obj client.Object) Verdict {
	if l := d.Labels; l != nil && !l.Matches(labels.Set(obj.GetLabels())) {
		return Rejected
	}
	switch f := d.Fields; {
	case f == nil || f.Empty():
		return Selected
	case d.ServerSelects():
		return Unclear
	case !f.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()}):
		return Rejected
	}
	return Selected
}

// ServerSelects reports whether what is watched is selected by a field of which only the
// server knows the value.
func (d *Definition) ServerSelects() bool {
	f := d.Fields
	return f != nil && slices.ContainsFunc(f.Requirements(), func(r fields.Requirement) bool {
		return r.Field != "metadata.name" && r.Field != "metadata.namespace"
	})
}

// Prepared is what is kept and read of obj, which is in the form of the place and
// belongs to the caller.
func (d *Definition) Prepared(obj client.Object) (client.Object, error) {
	if !d.ManagedFields && obj.GetManagedFields() != nil {
		obj.SetManagedFields(nil)
	}
	if d.Transform == nil {
		return obj, nil
	}
	changed, err := d.Transform(obj)
	if err != nil {
		return nil, fmt.Errorf("transform %s: %w", client.FormatKey(client.ObjectKeyFromObject(obj)), err)
	}
	return changed, nil
}

// Written is a private copy of obj, the result of a write, as it would be kept; nil
// means that it cannot be told.
func (d *Definition) Written(obj client.Object) client.Object {
	own, ok := d.Place.Adapt(obj, d.NewItem)
	if !ok {
		return nil
	}
	own, err := d.Prepared(own)
	if err != nil {
		return nil
	}
	return own
}

// NotFound is the error of a read of what is not there.
func (d *Definition) NotFound(key client.ObjectKey, resource string) error {
	err := apierrors.NewNotFound(schema.GroupResource{Group: d.Place.GVK.Group, Resource: resource}, key.Name)
	return fmt.Errorf("get %s %s: %w", d.Place.GVK.Kind, key, err)
}

// newObject makes an empty object of the kind in the form of the place.
func (d *Definition) newObject() client.Object {
	obj := d.NewItem()
	obj.GetObjectKind().SetGroupVersionKind(d.Place.GVK)
	return obj
}

// newList makes an empty list of such objects.
func (d *Definition) newList() (client.ObjectList, error) {
	gvk := d.Place.GVK.GroupVersion().WithKind(d.Place.GVK.Kind + "List")
	var list client.ObjectList
	switch d.Place.Form {
	case form.Metadata:
		list = &metav1.PartialObjectMetadataList{}
	case form.Untyped:
		list = &unstructured.UnstructuredList{}
	default:
		obj, err := d.Client.Scheme().New(gvk)
		if err != nil {
			return nil, fmt.Errorf("the scheme has no Go type of %s: %w", gvk, err)
		}
		var ok bool
		if list, ok = obj.(client.ObjectList); !ok {
			return nil, fmt.Errorf("%s: a %T is no list of objects", gvk, obj)
		}
	}
	list.GetObjectKind().SetGroupVersionKind(gvk)
	return list, nil
}
