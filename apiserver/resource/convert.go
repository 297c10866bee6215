// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ConvertTo returns an object of the resource in a version of another resource that has
// the same objects, or of the resource itself. It does not change obj, which it returns if
// it is in that version already.
func (r *Resource) ConvertTo(ctx context.Context, obj Object, to *Resource, version string) (Object, error) {
	if r.Group == to.Group && r.Plural == to.Plural {
		return r.converted(ctx, obj, version)
	}
	obj, err := r.converted(ctx, obj, r.Storage.Version)
	if err != nil {
		return nil, err
	}
	obj = obj.DeepCopyObject().(Object)
	if a := r.Storage.Alias; a != nil {
		obj = a.Save(obj)
	}
	if a := to.Storage.Alias; a != nil {
		obj = a.Load(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(to.GroupVersionKind(to.Storage.Version))
	return to.converted(ctx, obj, version)
}

// converted returns an object in another version of the resource.
func (r *Resource) converted(ctx context.Context, obj Object, version string) (Object, error) {
	kind := r.GroupVersionKind(version)
	if obj.GetObjectKind().GroupVersionKind() == kind {
		return obj, nil
	}
	out, err := r.ConvertAll(ctx, []Object{obj}, version)
	if err != nil {
		return nil, err
	}
	out[0].GetObjectKind().SetGroupVersionKind(kind)
	return out[0], nil
}

// ConvertAll returns objects in another version, in the same order, with [Resource.Convert] or, without that, as copies with another apiVersion.
func (r *Resource) ConvertAll(ctx context.Context, objects []Object, version string) ([]Object, error) {
	if r.Convert == nil {
		out := make([]Object, len(objects))
		for i, obj := range objects {
			obj = obj.DeepCopyObject().(Object)
			obj.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind(version))
			out[i] = obj
		}
		return out, nil
	}
	out, err := r.Convert(ctx, objects, version)
	if err != nil {
		return nil, err
	}
	if len(out) != len(objects) {
		return nil, apierrors.NewInternalError(fmt.Errorf("convert %s to %s: got %d objects for %d", r.Kind, version, len(out), len(objects)))
	}
	return out, nil
}
