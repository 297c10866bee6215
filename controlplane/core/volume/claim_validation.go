// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateClaim(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	spec := f.Child("spec")
	grouped := old != nil && (old.Spec.DataSource != nil && old.Spec.DataSource.APIGroup != nil ||
		old.Spec.DataSourceRef != nil && old.Spec.DataSourceRef.APIGroup != nil)
	checkClaimSpec(&spec, &c.Spec, grouped)
	if old != nil {
		checkClaimChange(&f, c, old)
	}
	return errs
}

// CheckClaim has the rules of the spec of a claim, or of a template of claims.
func CheckClaim(f *valid.Field, s *corev1.PersistentVolumeClaimSpec) { checkClaimSpec(f, s, false) }

func checkModes(f *valid.Field, modes []corev1.PersistentVolumeAccessMode) {
	single, other := false, false
	for _, mode := range modes {
		known := valid.Supported(f, "accessModes", mode, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)
		single = single || mode == corev1.ReadWriteOncePod
		other = other || known && mode != corev1.ReadWriteOncePod
	}
	if single && other {
		f.Forbidden("accessModes", "may not use ReadWriteOncePod with other access modes")
	}
}

func checkVolumeMode(f *valid.Field, mode *corev1.PersistentVolumeMode) {
	if mode != nil {
		valid.Supported(f, "volumeMode", *mode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	}
}

func checkClaimSpec(f *valid.Field, s *corev1.PersistentVolumeClaimSpec, anyGroup bool) {
	if len(s.AccessModes) == 0 {
		f.Required("accessModes", "at least 1 access mode is required")
	}
	f.Selector("selector", s.Selector)
	checkModes(f, s.AccessModes)
	resources := f.Child("resources")
	at := resources.Key(string(corev1.ResourceStorage))
	if size, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		at.Required(valid.Self, "")
	} else if size.Sign() <= 0 {
		at.Invalid(valid.Self, size.String(), "must be greater than zero")
	}
	if name := kind.Value(s.StorageClassName); name != "" {
		f.Subdomain("storageClassName", name)
	}
	checkVolumeMode(f, s.VolumeMode)
	source, ref := s.DataSource, s.DataSourceRef
	if source != nil {
		at := f.Child("dataSource")
		checkDataSource(&at, source.Name, source.Kind, source.APIGroup, anyGroup)
	}
	if ref != nil {
		at := f.Child("dataSourceRef")
		checkDataSource(&at, ref.Name, ref.Kind, ref.APIGroup, anyGroup)
		if n := kind.Value(ref.Namespace); n != "" {
			at.Namespace("namespace", n)
		}
	}
	switch {
	case source == nil || ref == nil:
	case kind.Value(ref.Namespace) != "":
		f.Invalid(valid.Self, f.PathOf("dataSource"), "may not be specified when dataSourceRef.namespace is specified")
	case !reflect.DeepEqual(source.APIGroup, ref.APIGroup) || source.Kind != ref.Kind || source.Name != ref.Name:
		f.Invalid(valid.Self, f.PathOf("dataSource"), "must match dataSourceRef")
	}
	if name := kind.Value(s.VolumeAttributesClassName); name != "" {
		f.Subdomain("volumeAttributesClassName", name)
	}
}

func checkDataSource(f *valid.Field, name, kindName string, group *string, anyGroup bool) {
	f.NonEmpty("name", name)
	f.NonEmpty("kind", kindName)
	switch g := kind.Value(group); {
	case g == "" && kindName != "PersistentVolumeClaim":
		f.Invalid(valid.Self, kindName, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
	case g != "" && !anyGroup:
		f.Subdomain("apiGroup", g)
	}
}

// checkClaimChange admits what a claim can follow: to be bound, and once it is,
// to grow or to change its class of attributes.
func checkClaimChange(f *valid.Field, c, old *corev1.PersistentVolumeClaim) {
	now, before := c.Spec.DeepCopy(), old.Spec.DeepCopy()
	if before.VolumeName == "" {
		before.VolumeName = now.VolumeName
	}
	const annotation = corev1.BetaStorageClassAnnotation
	class, annotated := old.Annotations[annotation]
	newClass, stillAnnotated := c.Annotations[annotation]
	switch {
	case annotated && before.StorageClassName == nil && kind.Value(now.StorageClassName) == class && now.StorageClassName != nil &&
		(!stillAnnotated || newClass == class):
		now.StorageClassName = nil
	default:
		if class != newClass {
			metadata := f.Child("metadata")
			annotations := metadata.Child("annotations")
			at := annotations.Key(annotation)
			at.Invalid(valid.Self, newClass, "field is immutable")
		}
		if now.StorageClassName != nil && before.StorageClassName == nil && (!annotated || *now.StorageClassName == class) {
			now.StorageClassName = nil
		}
	}
	if c.Status.Phase == corev1.ClaimBound {
		if now.Resources.Requests != nil {
			now.Resources.Requests[corev1.ResourceStorage] = before.Resources.Requests[corev1.ResourceStorage]
		}
		now.VolumeAttributesClassName = before.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(now, before) {
		f.Forbidden("spec", "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+
			valid.Difference(before, now))
	}
	spec := f.Child("spec")
	size, oldSize := c.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(oldSize) < 0 && size.Cmp(old.Status.Capacity[corev1.ResourceStorage]) <= 0 {
		resources := spec.Child("resources")
		requests := resources.Child("requests")
		requests.Forbidden("storage", "field can not be less than status.capacity")
	}
	f.Unchanged("volumeMode", c.Spec.VolumeMode, old.Spec.VolumeMode)
	if attributes := c.Spec.VolumeAttributesClassName; old.Status.CurrentVolumeAttributesClassName != nil &&
		!equality.Semantic.DeepEqual(attributes, old.Spec.VolumeAttributesClassName) {
		switch {
		case attributes == nil:
			spec.Forbidden("volumeAttributesClassName", "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil")
		case *attributes == "":
			spec.Forbidden("volumeAttributesClassName", "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil")
		}
	}
}

// validateClaimStatus has the rules of what is known of a claim's volume.
func validateClaimStatus(c, _ *corev1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	status := f.Child("status")
	at := status.Child("capacity")
	for _, name := range slices.Sorted(maps.Keys(c.Status.Capacity)) {
		if q := c.Status.Capacity[name]; q.Value() < 0 {
			one := at.Key(string(name))
			one.Invalid(valid.Self, q.Value(), "must be a valid resource quantity")
		}
	}
	at = status.Child("allocatedResourceStatuses")
	for _, name := range slices.Sorted(maps.Keys(c.Status.AllocatedResourceStatuses)) {
		checkClaimResource(&at, string(name))
		switch c.Status.AllocatedResourceStatuses[name] {
		case corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
			corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress,
			corev1.PersistentVolumeClaimNodeResizeInfeasible:
		default:
			valid.NotSupported(&at, "", string(name), string(corev1.PersistentVolumeClaimControllerResizeInProgress),
				string(corev1.PersistentVolumeClaimControllerResizeInfeasible), string(corev1.PersistentVolumeClaimNodeResizeInProgress),
				string(corev1.PersistentVolumeClaimNodeResizeInfeasible), string(corev1.PersistentVolumeClaimNodeResizePending))
		}
	}
	at = status.Child("allocatedResources")
	for _, name := range slices.Sorted(maps.Keys(c.Status.AllocatedResources)) {
		if !checkClaimResource(&at, string(name)) {
			continue
		}
		if q := c.Status.AllocatedResources[name]; q.Value() < 0 {
			one := at.Key(string(name))
			one.Invalid(valid.Self, q.Value(), "must be a valid resource quantity")
		}
	}
	return errs
}

func checkClaimResource(f *valid.Field, name string) bool {
	before := f.Len()
	f.Qualified(valid.Self, name)
	if f.Len() == before && valid.IsNativeResource(name) {
		valid.Supported(f, valid.Self, name, string(corev1.ResourceStorage))
	}
	return f.Len() == before
}

// claimWarnings are about a claim that names its class in the old way.
func claimWarnings(c, _ *corev1.PersistentVolumeClaim) []string {
	var out []string
	if _, annotated := c.Annotations[corev1.BetaStorageClassAnnotation]; annotated {
		out = append(out, "metadata.annotations["+corev1.BetaStorageClassAnnotation+`]: deprecated since v1.8; use "storageClassName" attribute instead`)
	}
	if q, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]; ok && q.MilliValue()%1000 != 0 {
		out = append(out, fmt.Sprintf("spec.resources.requests[storage]: fractional byte value %q is invalid, must be an integer", q.String()))
	}
	return out
}
