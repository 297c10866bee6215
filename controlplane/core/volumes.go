// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver"
)

func volumeKinds() []*apiserver.Resource {
	type (
		claim  = *corev1.PersistentVolumeClaim
		volume = *corev1.PersistentVolume
		class  = *storagev1.StorageClass
	)
	return []*apiserver.Resource{
		kind[corev1.PersistentVolumeClaim, claim]{
			version: "v1", plural: "persistentvolumeclaims", short: []string{"pvc"},
			deletion: apiserver.DeletionRules{ReturnsObject: true},
			status:   true, unconditional: true,
			defaults:      defaultClaim,
			initialStatus: func(c claim) { c.Status.Phase = corev1.ClaimPending },
			validate:      validateClaim,
			columns: columns("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age",
				"VolumeMode*"),
			row: claimRow,
		}.resource(),
		kind[corev1.PersistentVolume, volume]{
			version: "v1", plural: "persistentvolumes", short: []string{"pv"}, cluster: true,
			deletion: apiserver.DeletionRules{ReturnsObject: true},
			status:   true, unconditional: true,
			defaults: func(v volume) {
				orDefault(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
				fill(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
				if v.Spec.HostPath != nil {
					fill(&v.Spec.HostPath.Type, corev1.HostPathUnset)
				}
			},
			initialStatus: func(v volume) {
				now := metav1.Now().Rfc3339Copy()
				v.Status.Phase, v.Status.LastPhaseTransitionTime = corev1.VolumePending, &now
			},
			validate: validateVolume,
			columns: columns("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
				"VolumeAttributesClass", "Reason", "Age", "VolumeMode*"),
			row: volumeRow,
		}.resource(),
		kind[storagev1.StorageClass, class]{
			group: "storage.k8s.io", version: "v1", plural: "storageclasses", short: []string{"sc"}, cluster: true, unconditional: true,
			deletion: apiserver.DeletionRules{ReturnsObject: true},
			defaults: func(c class) {
				fill(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
				fill(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
			},
			validate: validateStorageClass,
			columns: columns("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode",
				"AllowVolumeExpansion", "Age"),
			row: func(c class) []any {
				name := c.Name
				if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
					name += " (default)"
				}
				return []any{name, c.Provisioner, string(value(c.ReclaimPolicy)), string(value(c.VolumeBindingMode)), value(c.AllowVolumeExpansion), age(c)}
			},
		}.resource(),
	}
}

func defaultClaim(c *corev1.PersistentVolumeClaim) {
	fill(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if c.Spec.DataSource != nil && c.Spec.DataSourceRef == nil {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: c.Spec.DataSource.APIGroup, Kind: c.Spec.DataSource.Kind, Name: c.Spec.DataSource.Name}
	}
}

// modes lists access modes in their short form.
func modes(list []corev1.PersistentVolumeAccessMode) string {
	var out []string
	for _, m := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{
		{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"},
	} {
		if slices.Contains(list, m.mode) {
			out = append(out, m.short)
		}
	}
	return strings.Join(out, ",")
}

// unset shows an optional text.
func unset(s *string) string {
	if s == nil {
		return "<unset>"
	}
	return *s
}

func claimRow(c *corev1.PersistentVolumeClaim) []any {
	phase := string(c.Status.Phase)
	if c.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	capacity, access := "", ""
	if c.Spec.VolumeName != "" {
		access = modes(c.Status.AccessModes)
		storage := c.Status.Capacity[corev1.ResourceStorage]
		capacity = storage.String()
	}
	class := value(c.Spec.StorageClassName)
	if annotated, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = annotated
	}
	mode := "<unset>"
	if c.Spec.VolumeMode != nil {
		mode = string(*c.Spec.VolumeMode)
	}
	return []any{c.Name, phase, c.Spec.VolumeName, capacity, access, class, unset(c.Spec.VolumeAttributesClassName), age(c), mode}
}

func volumeRow(v *corev1.PersistentVolume) []any {
	claim := ""
	if ref := v.Spec.ClaimRef; ref != nil {
		claim = ref.Namespace + "/" + ref.Name
	}
	phase := string(v.Status.Phase)
	if v.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	storage := v.Spec.Capacity[corev1.ResourceStorage]
	class := v.Spec.StorageClassName
	if annotated, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = annotated
	}
	mode := "<unset>"
	if v.Spec.VolumeMode != nil {
		mode = string(*v.Spec.VolumeMode)
	}
	return []any{
		v.Name, storage.String(), modes(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy), phase, claim,
		class, unset(v.Spec.VolumeAttributesClassName), v.Status.Reason, age(v), mode,
	}
}
