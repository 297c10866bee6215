// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Scale converts managedFields for writes through the scale subresource of a kind:
//
//	scale.ManagedFields, err = s.ToScale(parent.ManagedFields) // as the client sees it
//	scale, err = s.Update(ctx, live, scale, manager)           // or s.Apply
//	parent.ManagedFields, err = s.ToParent(parent.ManagedFields, scale.ManagedFields)
type Scale struct {
	*FieldManager
	version  schema.GroupVersion
	replicas managedfields.ResourcePathMappings
}

// NewScale returns the tracker for a kind in one version. replicas is the path of the
// desired count in each version of the kind, such as {"apps/v1": "spec.replicas" as a
// path}; nil for a version without scale.
func NewScale(version schema.GroupVersion, replicas map[string]fieldpath.Path) *Scale {
	kind := autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	return &Scale{
		FieldManager: New(Endpoint{
			Kind:        kind,
			Types:       FromOpenAPI(scaleDefinitions(kind)),
			Subresource: "scale",
			New:         func() Object { return &autoscalingv1.Scale{} },
			Resets: map[string]*fieldpath.Set{
				kind.GroupVersion().String(): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
			},
		}),
		version:  version,
		replicas: replicas,
	}
}

// ToScale returns the managedFields of a Scale, given those of the object.
func (s *Scale) ToScale(parent []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	return managedfields.NewScaleHandler(parent, s.version, s.replicas).ToSubresource()
}

// ToParent returns the managedFields of the object after a write to its Scale.
func (s *Scale) ToParent(parent, scale []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	return managedfields.NewScaleHandler(parent, s.version, s.replicas).ToParent(scale)
}

func scaleDefinitions(kind schema.GroupVersionKind) func() map[string]*spec.Schema {
	return func() map[string]*spec.Schema {
		object := func() *spec.Schema { return new(spec.Schema).Typed("object", "") }
		s := object().
			SetProperty("spec", *object().SetProperty("replicas", *spec.Int32Property())).
			SetProperty("status", *object().
				SetProperty("replicas", *spec.Int32Property()).
				SetProperty("selector", *spec.StringProperty()))
		return map[string]*spec.Schema{"Scale": Kind(kind, s), ObjectMetaName: ObjectMeta()}
	}
}
