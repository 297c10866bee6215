// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// The finalizers of claims, volumes and attributes classes, which the controllers
// of package protection take off again.
const (
	ClaimFinalizer  = "kubernetes.io/pvc-protection"
	VolumeFinalizer = "kubernetes.io/pv-protection"
	ClassFinalizer  = "kubernetes.io/vac-protection"
)

// StorageProtection keeps claims, volumes and attributes classes from going away
// while in use.
type StorageProtection struct{ resource.MutatesOnly }

var _ resource.Admission = StorageProtection{}

// protects returns the object to protect and its finalizer.
func (StorageProtection) protects(r *resource.AdmissionRequest) (metav1.Object, string) {
	if c := created[corev1.PersistentVolumeClaim](r); c != nil {
		return c, ClaimFinalizer
	}
	if v := created[corev1.PersistentVolume](r); v != nil {
		return v, VolumeFinalizer
	}
	if c := created[storagev1.VolumeAttributesClass](r); c != nil {
		return c, ClassFinalizer
	}
	return nil, ""
}

// Mutates implements [resource.Mutator].
func (s StorageProtection) Mutates(r *resource.AdmissionRequest) bool {
	obj, _ := s.protects(r)
	return obj != nil
}

// Admit implements [resource.Admission].
func (s StorageProtection) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	if obj, finalizer := s.protects(r); obj != nil && !slices.Contains(obj.GetFinalizers(), finalizer) {
		obj.SetFinalizers(append(obj.GetFinalizers(), finalizer))
	}
	return nil
}

// storageClasses are the storage classes of a store.
func storageClasses(store storage.Viewer) *Lister[storagev1.StorageClass] {
	return NewLister[storagev1.StorageClass](store, "storage.k8s.io/storageclasses")
}

// StorageClass gives new claims that say nothing about a class the default one.
type StorageClass struct {
	resource.MutatesOnly
	classes *Lister[storagev1.StorageClass]
}

var _ resource.Admission = (*StorageClass)(nil)

// NewStorageClass returns the admission over the classes of a store.
func NewStorageClass(store storage.Viewer) *StorageClass {
	return &StorageClass{classes: storageClasses(store)}
}

// lacksClass returns a new claim that says nothing about its class.
func (*StorageClass) lacksClass(r *resource.AdmissionRequest) *corev1.PersistentVolumeClaim {
	c := created[corev1.PersistentVolumeClaim](r)
	if c == nil || c.Spec.StorageClassName != nil {
		return nil
	}
	if _, annotated := c.Annotations[corev1.BetaStorageClassAnnotation]; annotated {
		return nil
	}
	return c
}

// Mutates implements [resource.Mutator].
func (s *StorageClass) Mutates(r *resource.AdmissionRequest) bool { return s.lacksClass(r) != nil }

// Admit implements [resource.Admission].
func (s *StorageClass) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	c := s.lacksClass(r)
	if c == nil {
		return nil
	}
	classes, err := s.classes.All("")
	if err != nil {
		return err
	}
	const key, beta = "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"
	chosen := newest(classes, func(c *storagev1.StorageClass) bool {
		return c.Annotations[key] == "true" || c.Annotations[beta] == "true"
	})
	if chosen != nil {
		name := chosen.Name
		c.Spec.StorageClassName = &name
	}
	return nil
}

// newest returns the newest object that is a default, nil if there is none. Of
// those of the same age, in order of their names, it is the first.
func newest[T any, P interface {
	*T
	metav1.Object
}](objects []P, isDefault func(P) bool) P {
	var found P
	for _, o := range objects {
		if !isDefault(o) {
			continue
		}
		if at := o.GetCreationTimestamp(); found == nil || at.After(found.GetCreationTimestamp().Time) {
			found = o
		}
	}
	return found
}

// VolumeResize lets claims grow that are bound and of a class that allows it.
type VolumeResize struct {
	resource.ValidatesOnly
	classes *Lister[storagev1.StorageClass]
}

var _ resource.Admission = (*VolumeResize)(nil)

// NewVolumeResize returns the admission over the classes of a store.
func NewVolumeResize(store storage.Viewer) *VolumeResize {
	return &VolumeResize{classes: storageClasses(store)}
}

// Validate implements [resource.Admission].
func (v *VolumeResize) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	c := written[corev1.PersistentVolumeClaim](r)
	old, _ := r.Old.(*corev1.PersistentVolumeClaim)
	if c == nil || old == nil {
		return nil
	}
	size, had := c.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(had) <= 0 {
		return nil
	}
	if old.Status.Phase != corev1.ClaimBound {
		return Forbidden(r, "Only bound persistent volume claims can be expanded")
	}
	if name := ClassOf(c); name != "" {
		class, err := v.classes.Get(name)
		if err != nil {
			return err
		}
		if class != nil && class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion {
			return nil
		}
	}
	return Forbidden(r, "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
}

// ClassOf returns the name of the storage class of a claim, empty for none.
func ClassOf(c *corev1.PersistentVolumeClaim) string {
	if class, annotated := c.Annotations[corev1.BetaStorageClassAnnotation]; annotated {
		return class
	}
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return ""
}
