// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volume serves the kinds of storage: claims, volumes, their classes, and the
// objects of CSI drivers.
package volume

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// Resources returns the kinds of this package.
func Resources() []*resource.Resource { //nolint:funlen // a table of kinds
	type (
		claim  = *corev1.PersistentVolumeClaim
		volume = *corev1.PersistentVolume
		class  = *storagev1.StorageClass

		attributesClass = *storagev1.VolumeAttributesClass
		attachment      = *storagev1.VolumeAttachment
		driver          = *storagev1.CSIDriver
		node            = *storagev1.CSINode
		capacity        = *storagev1.CSIStorageCapacity
	)
	return []*resource.Resource{
		kind.Definition[corev1.PersistentVolumeClaim, claim]{
			Version: "v1", Plural: "persistentvolumeclaims", Short: []string{"pvc"},
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Status:   true, Unconditional: true,
			Defaults:      DefaultClaim,
			InitialStatus: func(c claim) { c.Status.Phase = corev1.ClaimPending },
			Prepare:       prepareClaim,
			Validate:      validateClaim, ValidateStatus: validateClaimStatus,
			Warnings: claimWarnings,
			Columns: kind.Columns("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age",
				"VolumeMode*"),
			Row: claimRow,
		}.Resource(),
		kind.Definition[corev1.PersistentVolume, volume]{
			Version: "v1", Plural: "persistentvolumes", Short: []string{"pv"}, Cluster: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Status:   true, Unconditional: true,
			Defaults: defaultPersistentVolume, Warnings: volumeWarnings,
			InitialStatus: func(v volume) {
				now := metav1.Now().Rfc3339Copy()
				v.Status.Phase, v.Status.LastPhaseTransitionTime = corev1.VolumePending, &now
			},
			Validate: validateVolume, PrepareStatus: prepareVolumeStatus,
			Columns: kind.Columns("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
				"VolumeAttributesClass", "Reason", "Age", "VolumeMode*"),
			Row: volumeRow,
		}.Resource(),
		kind.Definition[storagev1.StorageClass, class]{
			Group: "storage.k8s.io", Version: "v1", Plural: "storageclasses", Short: []string{"sc"}, Cluster: true, Unconditional: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Defaults: func(c class) {
				kind.Fill(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
				kind.Fill(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
			},
			Validate: validateStorageClass, Warnings: classWarnings,
			Columns: kind.Columns("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode",
				"AllowVolumeExpansion", "Age"),
			Row: func(c class) []any {
				name := c.Name
				if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
					name += " (default)"
				}
				reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
				if c.ReclaimPolicy != nil {
					reclaim = *c.ReclaimPolicy
				}
				if c.VolumeBindingMode != nil {
					binding = *c.VolumeBindingMode
				}
				return []any{name, c.Provisioner, string(reclaim), string(binding), kind.Value(c.AllowVolumeExpansion), kind.Age(c)}
			},
		}.Resource(),
		kind.Definition[storagev1.VolumeAttributesClass, attributesClass]{
			Group: storagev1.GroupName, Version: "v1", Plural: "volumeattributesclasses", Short: []string{"vac"}, Cluster: true,
			Metadata:      kind.Metadata{RepeatCreationErrors: true},
			Unconditional: true, Deletion: resource.DeletionRules{ReturnsObject: true},
			Validate: validateAttributesClass,
			Columns:  kind.Columns("Name", "DriverName", "Age"),
			Row:      func(c attributesClass) []any { return []any{c.Name, c.DriverName, kind.Age(c)} },
		}.Resource(),
		kind.Definition[storagev1.VolumeAttachment, attachment]{
			Group: storagev1.GroupName, Version: "v1", Plural: "volumeattachments", Cluster: true, Status: true,
			Metadata: kind.Metadata{KeepMetadataInStatus: true},
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Validate: validateAttachment, ValidateStatus: validateAttachment,
			Columns: kind.Columns("Name", "Attacher:name", "PV", "Node", "Attached:boolean", "Age"),
			Row: func(a attachment) []any {
				return []any{a.Name, a.Spec.Attacher, kind.Value(a.Spec.Source.PersistentVolumeName), a.Spec.NodeName, a.Status.Attached, kind.Age(a)}
			},
		}.Resource(),
		kind.Definition[storagev1.CSIDriver, driver]{
			Group: storagev1.GroupName, Version: "v1", Plural: "csidrivers", Cluster: true,
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Defaults: defaultDriver,
			Validate: validateDriver,
			Columns: kind.Columns("Name", "AttachRequired:boolean", "PodInfoOnMount:boolean", "StorageCapacity:boolean", "TokenRequests",
				"RequiresRepublish:boolean", "Modes", "Age"),
			Row: driverRow,
		}.Resource(),
		kind.Definition[storagev1.CSINode, node]{
			Group: storagev1.GroupName, Version: "v1", Plural: "csinodes", Cluster: true, Status: true,
			Metadata:      kind.Metadata{KeepMetadataInStatus: true},
			Deletion:      resource.DeletionRules{ReturnsObject: true},
			PrepareStatus: func(_ context.Context, n, _ node) { n.Status.StorageHealth = nil }, // CSIVolumeHealth is off by default
			Validate:      validateNode,
			Columns:       kind.Columns("Name", "Drivers:integer", "Age"),
			Row:           func(n node) []any { return []any{n.Name, kind.Count(n.Spec.Drivers), kind.Age(n)} },
		}.Resource(),
		kind.Definition[storagev1.CSIStorageCapacity, capacity]{
			Group: storagev1.GroupName, Version: "v1", Plural: "csistoragecapacities",
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Deletion: resource.DeletionRules{},
			Validate: validateCapacity, Warnings: capacityWarnings,
			Columns: kind.Columns("Name", "Created At:date"),
			Row:     func(c capacity) []any { return kind.CreatedRow(c) },
		}.Resource(),
	}
}

// prepareVolumeStatus sees to the time since when a volume is in its phase, unless who
// changes the phase does.
func prepareVolumeStatus(_ context.Context, v, old *corev1.PersistentVolume) {
	now, before := &v.Status, &old.Status
	switch same := now.Phase == before.Phase; {
	case same && now.LastPhaseTransitionTime == nil:
		now.LastPhaseTransitionTime = before.LastPhaseTransitionTime
	case !same && (now.LastPhaseTransitionTime == nil || now.LastPhaseTransitionTime.Equal(before.LastPhaseTransitionTime)):
		at := metav1.Now().Rfc3339Copy()
		now.LastPhaseTransitionTime = &at
	}
}

// DefaultClaim sets the defaults of a claim, or of the template of one.
func DefaultClaim(c *corev1.PersistentVolumeClaim) {
	kind.Fill(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	kind.OrDefault(&c.Status.Phase, corev1.ClaimPending)
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
	class := kind.Value(c.Spec.StorageClassName)
	if annotated, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = annotated
	}
	mode := "<unset>"
	if c.Spec.VolumeMode != nil {
		mode = string(*c.Spec.VolumeMode)
	}
	return []any{c.Name, phase, c.Spec.VolumeName, capacity, access, class, unset(c.Spec.VolumeAttributesClassName), kind.Age(c), mode}
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
		class, unset(v.Spec.VolumeAttributesClassName), v.Status.Reason, kind.Age(v), mode,
	}
}

func driverRow(d *storagev1.CSIDriver) []any {
	var modes, audiences []string
	for _, m := range d.Spec.VolumeLifecycleModes {
		modes = append(modes, string(m))
	}
	for _, r := range d.Spec.TokenRequests {
		audiences = append(audiences, r.Audience)
	}
	requests := "<unset>"
	if d.Spec.TokenRequests != nil {
		requests = strings.Join(audiences, ",")
	}
	return []any{
		d.Name, d.Spec.AttachRequired == nil || *d.Spec.AttachRequired, kind.Value(d.Spec.PodInfoOnMount), kind.Value(d.Spec.StorageCapacity), requests,
		kind.Value(d.Spec.RequiresRepublish), kind.OrNone(strings.Join(modes, ",")), kind.Age(d),
	}
}

func defaultPersistentVolume(v *corev1.PersistentVolume) {
	s := &v.Spec
	kind.OrDefault(&s.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	kind.Fill(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	if s.HostPath != nil {
		kind.Fill(&s.HostPath.Type, corev1.HostPathUnset)
	}
	if s.RBD != nil {
		kind.OrDefault(&s.RBD.RBDPool, "rbd")
		kind.OrDefault(&s.RBD.RadosUser, "admin")
		kind.OrDefault(&s.RBD.Keyring, "/etc/ceph/keyring")
	}
	if s.ISCSI != nil {
		kind.OrDefault(&s.ISCSI.ISCSIInterface, "default")
	}
	if s.AzureDisk != nil {
		DefaultAzureDisk(s.AzureDisk)
	}
	if s.ScaleIO != nil {
		kind.OrDefault(&s.ScaleIO.StorageMode, "ThinProvisioned")
		kind.OrDefault(&s.ScaleIO.FSType, "xfs")
	}
	kind.OrDefault(&v.Status.Phase, corev1.VolumePending)
}

// DefaultAzureDisk fills in what a disk leaves out, in volumes and in Pods.
func DefaultAzureDisk(d *corev1.AzureDiskVolumeSource) {
	kind.Fill(&d.CachingMode, corev1.AzureDataDiskCachingReadWrite)
	kind.Fill(&d.Kind, corev1.AzureSharedBlobDisk)
	kind.Fill(&d.FSType, "ext4")
	kind.Fill(&d.ReadOnly, false)
}
