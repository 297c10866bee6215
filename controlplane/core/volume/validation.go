// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateClaim(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	at, s := field.NewPath("spec"), &c.Spec
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	for _, mode := range s.AccessModes {
		errs = append(errs, valid.OneOf(at.Child("accessModes"), mode, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)...)
	}
	if size, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(at.Child("resources").Key("storage"), ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(at.Child("resources").Key("storage"), size.String(), "must be greater than zero"))
	}
	if old == nil {
		return errs
	}
	rest := s.DeepCopy()
	size, had := s.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if old.Status.Phase == corev1.ClaimBound {
		rest.Resources.Requests = old.Spec.Resources.Requests
		if there := old.Status.Capacity[corev1.ResourceStorage]; size.Cmp(had) < 0 && size.Cmp(there) <= 0 {
			errs = append(errs, field.Forbidden(at.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
		}
	}
	rest.VolumeAttributesClassName = old.Spec.VolumeAttributesClassName
	if old.Spec.VolumeName == "" {
		rest.VolumeName = "" // the binder's to set
	}
	if old.Spec.StorageClassName == nil {
		rest.StorageClassName = nil
	}
	if !equality.Semantic.DeepEqual(*rest, old.Spec) {
		errs = append(errs, field.Forbidden(at, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	return errs
}

// claimWarnings are about a claim that names its class in the old way.
func claimWarnings(c, _ *corev1.PersistentVolumeClaim) []string {
	if _, annotated := c.Annotations[corev1.BetaStorageClassAnnotation]; annotated {
		return []string{"metadata.annotations[" + corev1.BetaStorageClassAnnotation + `]: deprecated since v1.8; use "storageClassName" attribute instead`}
	}
	return nil
}

func validateVolume(v, old *corev1.PersistentVolume) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if len(v.Spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), ""))
	}
	if len(v.Spec.Capacity) == 0 {
		errs = append(errs, field.Required(at.Child("capacity"), ""))
	} else if _, ok := v.Spec.Capacity[corev1.ResourceStorage]; !ok || len(v.Spec.Capacity) > 1 {
		errs = append(errs, field.NotSupported(at.Child("capacity"), v.Spec.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	if v.Spec.PersistentVolumeSource == (corev1.PersistentVolumeSource{}) {
		errs = append(errs, field.Required(at, "must specify a volume type"))
	}
	errs = append(errs, valid.OneOf(at.Child("persistentVolumeReclaimPolicy"), v.Spec.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	if old != nil && !equality.Semantic.DeepEqual(v.Spec.PersistentVolumeSource, old.Spec.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(at.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation"))
	}
	return errs
}

func validateStorageClass(c, old *storagev1.StorageClass) field.ErrorList {
	var errs field.ErrorList
	if c.Provisioner == "" {
		errs = append(errs, field.Required(field.NewPath("provisioner"), ""))
	}
	if old == nil {
		return errs
	}
	if !equality.Semantic.DeepEqual(c.Parameters, old.Parameters) {
		errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
	}
	if c.Provisioner != old.Provisioner {
		errs = append(errs, field.Forbidden(field.NewPath("provisioner"), "updates to provisioner are forbidden."))
	}
	if kind.Value(c.ReclaimPolicy) != kind.Value(old.ReclaimPolicy) {
		errs = append(errs, field.Forbidden(field.NewPath("reclaimPolicy"), "updates to reclaimPolicy are forbidden."))
	}
	return append(errs, valid.Immutable(field.NewPath("volumeBindingMode"), c.VolumeBindingMode, old.VolumeBindingMode)...)
}
