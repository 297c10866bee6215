// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// backendVersion returns the version in which a backend has its objects, for requests in v.
func (in *Served) backendVersion(v *resource.Version) *resource.Version {
	if own := in.Version(in.Storage.Version); own != nil {
		return own
	}
	return v
}

// ToBackend returns an object of version v as a backend gets it. It may change obj.
func (in *Served) ToBackend(ctx context.Context, v *resource.Version, obj resource.Object) (resource.Object, error) {
	if in.backendVersion(v) == v {
		return obj, nil
	}
	revision := obj.GetResourceVersion()
	obj.SetResourceVersion("")
	out, err := in.toStorage(ctx, obj)
	if err != nil {
		return nil, err
	}
	out.SetResourceVersion(revision)
	return out, nil
}

// FromBackend returns objects of a backend in version v, as its rules expect them: as a
// [resource.Doc], unless the version has a Go type. It may change objects.
func (in *Served) FromBackend(ctx context.Context, v *resource.Version, objects []resource.Object) ([]resource.Object, error) {
	out := make([]resource.Object, len(objects))
	var foreign []resource.Object
	var at []int
	for i, obj := range objects {
		obj, err := in.objectFromBackend(in.backendVersion(v), obj)
		if err != nil {
			return nil, err
		}
		if out[i] = obj; obj.GetObjectKind().GroupVersionKind().Version != v.Name {
			foreign, at = append(foreign, obj), append(at, i)
		}
	}
	if len(foreign) == 0 {
		return out, nil
	}
	converted, err := inVersion(v, foreign, func(batch []resource.Object) ([]resource.Object, error) {
		return in.ConvertAll(ctx, batch, v.Name)
	})
	if err != nil {
		return nil, err
	}
	for i, obj := range converted {
		out[at[i]] = obj
	}
	return out, nil
}

// RecordsFromBackend makes records of objects of a backend in version v.
func (g *Registry) RecordsFromBackend(ctx context.Context, in *Served, v *resource.Version, objects ...resource.Object) ([]*storage.Record, error) {
	converted, err := in.FromBackend(ctx, v, objects)
	if err != nil {
		return nil, err
	}
	out := make([]*storage.Record, len(converted))
	for i, obj := range converted {
		if out[i], err = g.TransientRecord(in, v, obj); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// objectFromBackend returns an object of a backend, which has it in the version own, with its
// kind and, unless the version has a Go type, as a [resource.Doc]. One without a Go type may
// say that it is of another version.
func (in *Served) objectFromBackend(own *resource.Version, obj resource.Object) (resource.Object, error) {
	kind := in.GroupVersionKind(own.Name)
	if own.Typed() {
		obj.GetObjectKind().SetGroupVersionKind(kind)
		return obj, nil
	}
	d, is := obj.(*resource.Doc)
	if u, other := obj.(*unstructured.Unstructured); other {
		d, is = resource.NewDoc(u.Object), true
	}
	if is {
		if in.Version(d.GroupVersionKind().Version) == nil || d.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: in.Group, Kind: in.Kind}) {
			d.SetGroupVersionKind(kind)
		}
		return d, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("convert a %T: %w", obj, err))
	}
	if metadata, ok := content["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	d = resource.NewDoc(content)
	d.SetGroupVersionKind(kind)
	return d, nil
}
