// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateStorageClass(c, _ *storagev1.StorageClass) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	if c.Provisioner != "" {
		f.Qualified("provisioner", strings.ToLower(c.Provisioner))
	}
	checkParameters(&f, c.Parameters)
	if p := c.ReclaimPolicy; p != nil && *p != "" {
		valid.Supported(&f, "reclaimPolicy", *p, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)
	}
	if c.VolumeBindingMode == nil {
		f.Required("volumeBindingMode", "")
	} else {
		valid.Supported(&f, "volumeBindingMode", *c.VolumeBindingMode, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)
	}
	at := f.Child("allowedTopologies")
	checkTopologies(&at, c.AllowedTopologies)
	return errs
}

// checkParameters has the rules of what is handed on to a driver.
func checkParameters(f *valid.Field, parameters map[string]string) {
	const name, entries, bytes = "parameters", 512, 256 << 10
	if len(parameters) > entries {
		f.TooLong(name, entries)
	}
	size := 0
	for k, v := range parameters {
		if k == "" {
			f.Invalid(name, k, "field can not be empty.")
		}
		size += len(k) + len(v)
	}
	if size > bytes {
		f.TooLong(name, bytes)
	}
}

func checkTopologies(f *valid.Field, terms []corev1.TopologySelectorTerm) {
	// One without expressions is as kube-apiserver has it taken for the same as each of
	// the places that it keeps for all terms.
	seen := make([]map[string]sets.Set[string], len(terms))
	for i, t := range terms {
		at := f.Index(i)
		list := at.Child("matchLabelExpressions")
		chosen := map[string]sets.Set[string]{}
		for j, e := range t.MatchLabelExpressions {
			one, set := list.Index(j), sets.New[string]()
			values := one.Child("values")
			if len(e.Values) == 0 {
				values.Required(valid.Self, "")
			}
			for k, v := range e.Values {
				if set.Has(v) {
					at := values.Index(k)
					at.Duplicate(valid.Self, v)
				}
				set.Insert(v)
			}
			one.LabelKey("key", e.Key)
			if _, twice := chosen[e.Key]; twice {
				one.Duplicate("key", e.Key)
			}
			chosen[e.Key] = set
		}
		for _, other := range seen {
			if equality.Semantic.DeepEqual(chosen, other) {
				at.Duplicate("matchLabelExpressions", "")
			}
		}
		seen = append(seen, chosen) //nolint:makezero // see above: behind the places of all terms
	}
}

func validateAttributesClass(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	if old != nil {
		if c.DriverName != old.DriverName {
			f.Forbidden("driverName", "updates to driverName are forbidden.")
		}
		if !maps.Equal(c.Parameters, old.Parameters) {
			f.Forbidden("parameters", "updates to parameters are forbidden.")
		}
	}
	if f.NonEmpty("driverName", c.DriverName) {
		f.Qualified("driverName", strings.ToLower(c.DriverName))
	}
	checkParameters(&f, c.Parameters)
	if len(c.Parameters) == 0 {
		f.Required("parameters", "must contain at least one key/value pair")
	}
	return errs
}

func validateAttachment(a, _ *storagev1.VolumeAttachment) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	spec := f.Child("spec")
	source := spec.Child("source")
	inline, name := a.Spec.Source.InlineVolumeSpec, a.Spec.Source.PersistentVolumeName
	const exactly = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	switch {
	case inline == nil && name == nil:
		source.Required(valid.Self, exactly)
	case inline != nil && name != nil:
		source.Forbidden(valid.Self, exactly)
	case name != nil && *name == "":
		source.Required("persistentVolumeName", "must specify non empty persistentVolumeName")
	case inline != nil:
		at := source.Child("inlineVolumeSpec")
		CheckVolume(&at, inline, "", true)
	}
	spec.Subdomain("nodeName", a.Spec.NodeName)
	status := f.Child("status")
	size := 0
	for k, v := range a.Status.AttachmentMetadata {
		size += len(k) + len(v)
	}
	const bytes, message = 256 << 10, 1024
	if size > bytes {
		status.TooLong("attachmentMetadata", bytes)
	}
	failed := func(name string, e *storagev1.VolumeError) {
		if e != nil && len(e.Message) > message {
			at := status.Child(name)
			at.TooLong("message", bytes)
		}
	}
	failed("attachError", a.Status.AttachError)
	failed("detachError", a.Status.DetachError)
	if name != nil {
		source.Subdomain("persistentVolumeName", *name)
	}
	return errs
}

func defaultDriver(d *storagev1.CSIDriver) {
	kind.Fill(&d.Spec.AttachRequired, true)
	kind.Fill(&d.Spec.PodInfoOnMount, false)
	kind.Fill(&d.Spec.StorageCapacity, false)
	kind.Fill(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(d.Spec.VolumeLifecycleModes) == 0 {
		d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	kind.Fill(&d.Spec.RequiresRepublish, false)
	kind.Fill(&d.Spec.SELinuxMount, false)
	kind.Fill(&d.Spec.PreventPodSchedulingIfMissing, false)
}

func validateDriver(d, old *storagev1.CSIDriver) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	spec := f.Child("spec")
	valid.Supported(&spec, "fsGroupPolicy", *d.Spec.FSGroupPolicy,
		storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	checkTokenRequests(&spec, d.Spec.TokenRequests)
	for _, mode := range d.Spec.VolumeLifecycleModes {
		valid.Supported(&spec, "volumeLifecycleModes", mode, storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)
	}
	if n := d.Spec.NodeAllocatableUpdatePeriodSeconds; n != nil && *n < 10 {
		spec.Invalid("nodeAllocatableUpdatePeriodSeconds", *n, "must be greater than or equal to 10 seconds")
	}
	if s := d.Spec.ServiceAccountTokenInSecrets; s != nil && len(d.Spec.TokenRequests) == 0 {
		spec.Invalid("serviceAccountTokenInSecrets", *s, "serviceAccountTokenInSecrets is set but no tokenRequests are specified")
	}
	if old != nil {
		spec.Unchanged("attachedRequired", d.Spec.AttachRequired, old.Spec.AttachRequired)
		spec.Unchanged("volumeLifecycleModes", d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes)
	}
	return errs
}

func checkTokenRequests(f *valid.Field, requests []storagev1.TokenRequest) {
	audiences := sets.New[string]()
	list := f.Child("tokenRequests")
	for i, r := range requests {
		at := list.Index(i)
		if audiences.Has(r.Audience) {
			at.Duplicate("audience", r.Audience)
			continue
		}
		audiences.Insert(r.Audience)
		switch s := r.ExpirationSeconds; {
		case s == nil:
		case *s < 600:
			at.Invalid("expirationSeconds", *s, "may not specify a duration less than 10 minutes")
		case *s > 1<<32:
			at.Invalid("expirationSeconds", *s, "may not specify a duration larger than 2^32 seconds")
		}
	}
}

func validateNode(n, old *storagev1.CSINode) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	spec := f.Child("spec")
	list := spec.Child("drivers")
	names := sets.New[string]()
	for i, d := range n.Spec.Drivers {
		at := list.Index(i)
		DriverName(&at, "name", d.Name)
		at.NonEmpty("nodeID", d.NodeID)
		if len(d.NodeID) > 256 {
			at.Invalid("nodeID", d.NodeID, "must be 256 characters or less")
		}
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			allocatable := at.Child("allocatable")
			allocatable.NotNegative("count", int64(*d.Allocatable.Count))
		}
		if names.Has(d.Name) {
			at.Duplicate("name", d.Name)
		}
		names.Insert(d.Name)
		keys := sets.New[string]()
		for _, key := range d.TopologyKeys {
			at.NonEmpty(valid.Self, key)
			if keys.Has(key) {
				at.Duplicate(valid.Self, key)
			}
			keys.Insert(key)
			at.Qualified(valid.Self, key)
		}
	}
	if old == nil {
		return errs
	}
	for _, before := range old.Spec.Drivers {
		if i := slices.IndexFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == before.Name }); i >= 0 {
			now := n.Spec.Drivers[i]
			now.Allocatable, before.Allocatable = nil, nil
			spec.Unchanged("drivers", now, before)
		}
	}
	return errs
}

func validateCapacity(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	f.Selector("nodeTopology", c.NodeTopology)
	f.Subdomain("storageClassName", c.StorageClassName)
	if c.Capacity != nil {
		f.Quantity("capacity", "", *c.Capacity)
	}
	if old == nil {
		return errs
	}
	f.Unchanged("nodeTopology", c.NodeTopology, old.NodeTopology)
	f.Unchanged("storageClassName", c.StorageClassName, old.StorageClassName)
	return errs
}
