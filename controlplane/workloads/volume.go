// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const binder = step.KubeSystem + "persistent-volume-binder"

// Annotations of claims and volumes that a controller has bound.
const (
	boundByController = "pv.kubernetes.io/bound-by-controller"
	bindCompleted     = "pv.kubernetes.io/bind-completed"
	provisionedBy     = "pv.kubernetes.io/provisioned-by"
)

// provisioner is the driver name of the simulated volumes.
const provisioner = "simulated.steer.dev"

// lookClaim binds a claim to a volume of its own, or to the one that it names.
func (t *visit) lookClaim(key storage.Key) {
	self, c := t.Index.Objects[key], cluster.Stored[corev1.PersistentVolumeClaim](t.Turn, key)
	if self == nil || c == nil || self.Deleting {
		return
	}
	name := c.Spec.VolumeName
	if name == "" {
		name = "pvc-" + string(c.UID)
	}
	at := storage.Key{Bucket: cluster.Volumes, Name: name}
	v := cluster.Stored[corev1.PersistentVolume](t.Turn, at)
	switch {
	case v == nil && c.Spec.VolumeName == "":
		t.provision(key, c, name)
		return
	case v == nil:
		return // the volume that the claim names does not exist yet
	case v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID == "" && isFor(v, c):
		if why := mismatch(v, c); why != "" {
			t.warn(key, c, "VolumeMismatch", fmt.Sprintf("Cannot bind to requested volume %q: %s", v.Name, why))
			return
		}
		v.Spec.ClaimRef = claimReference(c)
		v.Annotations = cluster.With(v.Annotations, boundByController, "yes")
		t.Update(binder, at, "", v)
		t.Requests[len(t.Requests)-1].Subject.Key = key
		return
	case v.Spec.ClaimRef.UID != c.UID:
		return // another claim has it
	}
	if c.Spec.VolumeName == "" || c.Annotations[bindCompleted] == "" {
		if c.Spec.VolumeName == "" {
			c.Annotations = cluster.With(c.Annotations, boundByController, "yes")
		}
		c.Annotations = cluster.With(c.Annotations, bindCompleted, "yes")
		c.Spec.VolumeName = name
		t.Update(binder, key, "", c)
		return
	}
	before := c.Status.DeepCopy()
	if c.Status.Phase == corev1.ClaimBound && t.modify(key, c, v) {
		return
	}
	c.Status.CurrentVolumeAttributesClassName = v.Spec.VolumeAttributesClassName
	c.Status.Phase, c.Status.AccessModes, c.Status.Capacity = corev1.ClaimBound, v.Spec.AccessModes, v.Spec.Capacity
	if !equality.Semantic.DeepEqual(before, &c.Status) {
		t.Update(binder, key, "status", c)
	}
}

// provision creates the volume of a claim, once its VolumeAttributesClass exists.
func (t *visit) provision(key storage.Key, c *corev1.PersistentVolumeClaim, name string) {
	if class := classOf(c.Spec.VolumeAttributesClassName); class != "" && !t.hasAttributes(class) {
		t.warn(key, c, "ProvisioningFailed", fmt.Sprintf("failed to provision volume: volumeattributesclass.storage.k8s.io %q not found", class))
		return
	}
	t.Create(binder, key, cluster.Volumes, volumeFor(c, name))
}

// modify sets the VolumeAttributesClass of a bound claim on its volume, as the resizer of a driver does: the
// status of the claim follows. It reports whether this step changes the volume.
func (t *visit) modify(key storage.Key, c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) bool {
	wanted := classOf(c.Spec.VolumeAttributesClassName)
	switch {
	case wanted == "" || wanted == classOf(v.Spec.VolumeAttributesClassName):
		c.Status.ModifyVolumeStatus = nil
	case !t.hasAttributes(wanted):
		c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: wanted, Status: corev1.PersistentVolumeClaimModifyVolumePending}
	default:
		v.Spec.VolumeAttributesClassName = &wanted
		at := storage.Key{Bucket: cluster.Volumes, Name: v.Name}
		t.Update(binder, at, "", v)
		t.Requests[len(t.Requests)-1].Subject.Key = key
		return true
	}
	return false
}

// classOf is the name of a class, empty for none.
func classOf(class *string) string {
	if class == nil {
		return ""
	}
	return *class
}

// hasAttributes reports whether there is a VolumeAttributesClass.
func (t *visit) hasAttributes(class string) bool {
	return t.View.Get(storage.Key{Bucket: cluster.AttributesClasses, Name: class}) != nil
}

// warn records an Event that a claim cannot be bound, once for each reason.
func (t *visit) warn(key storage.Key, c *corev1.PersistentVolumeClaim, reason, message string) {
	if t.controller.warned[c.UID] == message {
		return
	}
	t.controller.warned[c.UID] = message
	t.Note(cluster.Note{User: binder, As: "persistentvolume-controller", About: key, UID: c.UID, Warning: true, Reason: reason, Message: message}, t.Now)
}

// mismatch is why a volume cannot be that of a claim; empty if it can.
func mismatch(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) string {
	offered, asked := v.Spec.Capacity[corev1.ResourceStorage], c.Spec.Resources.Requests[corev1.ResourceStorage]
	class, has := c.Annotations[corev1.BetaStorageClassAnnotation]
	if !has {
		class = classOf(c.Spec.StorageClassName)
	}
	modeOf := func(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
		if mode == nil {
			return corev1.PersistentVolumeFilesystem
		}
		return *mode
	}
	switch {
	case v.DeletionTimestamp != nil:
		return fmt.Sprintf("the volume is marked for deletion %q", v.Name)
	case offered.Cmp(asked) < 0:
		return "requested PV is too small"
	case v.Spec.StorageClassName != class:
		return "storageClassName does not match"
	case classOf(v.Spec.VolumeAttributesClassName) != classOf(c.Spec.VolumeAttributesClassName):
		return "volumeAttributesClassName does not match"
	case modeOf(v.Spec.VolumeMode) != modeOf(c.Spec.VolumeMode):
		return "incompatible volumeMode"
	}
	for _, mode := range c.Spec.AccessModes {
		if !slices.Contains(v.Spec.AccessModes, mode) {
			return "incompatible accessMode"
		}
	}
	return ""
}

func claimReference(c *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion,
	}
}

// volumeFor is the volume that a claim asks for.
func volumeFor(c *corev1.PersistentVolumeClaim, name string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: c.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes: c.Spec.AccessModes, ClaimRef: claimReference(c), VolumeMode: c.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: provisioner, VolumeHandle: name},
			},
		},
	}
	v.Spec.StorageClassName = classOf(c.Spec.StorageClassName)
	if class := classOf(c.Spec.VolumeAttributesClassName); class != "" {
		v.Spec.VolumeAttributesClassName = &class
	}
	return v
}

// lookVolume updates the phase of a volume, and deletes a provisioned one whose
// claim is gone, once its phase is Released: a bound one is protected.
func (t *visit) lookVolume(key storage.Key) {
	self, v := t.Index.Objects[key], cluster.Stored[corev1.PersistentVolume](t.Turn, key)
	if self == nil || v == nil {
		return
	}
	phase := corev1.VolumeAvailable
	if ref := v.Spec.ClaimRef; ref != nil {
		claim := t.Index.Objects[self.Owner.Key]
		switch {
		case claim != nil && (ref.UID == "" || claim.UID == ref.UID):
			phase = corev1.VolumeBound
		case ref.UID != "":
			phase = corev1.VolumeReleased
		}
	}
	if v.Status.Phase != phase {
		now := t.Stamp()
		v.Status.Phase, v.Status.LastPhaseTransitionTime = phase, &now
		t.Update(binder, key, "status", v)
		return
	}
	ours := strings.HasPrefix(v.Annotations[provisionedBy], provisioner)
	if phase == corev1.VolumeReleased && ours && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !self.Deleting {
		t.Delete(binder, key, self, metav1.DeleteOptions{})
	}
}
