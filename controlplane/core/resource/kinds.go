// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource serves the kinds of dynamic resource allocation: DeviceClass,
// ResourceClaim, ResourceClaimTemplate, ResourceSlice and DeviceTaintRule.
package resource

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

type (
	class    = *resourcev1.DeviceClass
	claim    = *resourcev1.ResourceClaim
	template = *resourcev1.ResourceClaimTemplate
	slice    = *resourcev1.ResourceSlice
)

// Plurals of kinds.
const claims, templates = "resourceclaims", "resourceclaimtemplates"

// Resources returns the kinds of this package.
func Resources() []*resource.Resource {
	const group = resourcev1.GroupName
	return []*resource.Resource{
		kind.Definition[resourcev1.DeviceClass, class]{
			Group: group, Version: "v1", Plural: "deviceclasses", Cluster: true, Generations: true, Unconditional: true,
			Deletion: resource.DeletionRules{ReturnsObject: true},
			NameRule: className, Metadata: kind.Metadata{RepeatCreationErrors: true},
			Validate: validateClass,
			Columns:  kind.Columns("Name", "Age"), Row: func(c class) []any { return []any{c.Name, kind.Age(c)} },
		}.Resource(),
		kind.Definition[resourcev1.ResourceClaim, claim]{
			Group: group, Version: "v1", Plural: claims, Status: true, Unconditional: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true, KeepMetadataInStatus: true}, Deletion: resource.DeletionRules{ReturnsObject: true},
			Defaults:      defaultClaim,
			PrepareStatus: prepareClaimStatus, ValidateStatus: validateClaimStatus,
			Validate: func(c, old claim) field.ErrorList {
				var errs field.ErrorList
				if f := valid.Root(&errs); old == nil {
					at := f.Child("spec")
					checkClaim(&at, &c.Spec.Devices)
				}
				return errs
			},
			Columns: kind.Columns("Name", "State", "Age"),
			Row:     func(c claim) []any { return []any{c.Name, claimState(c), kind.Age(c)} },
		}.Resource(),
		kind.Definition[resourcev1.ResourceClaimTemplate, template]{
			Group: group, Version: "v1", Plural: templates, Unconditional: true,
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Defaults: func(t template) { defaultDevices(&t.Spec.Spec.Devices) },
			Validate: func(t, old template) field.ErrorList {
				var errs field.ErrorList
				f := valid.Root(&errs)
				if old != nil {
					f.Unchanged("spec", t.Spec, old.Spec)
					return errs
				}
				at := f.Child("spec")
				checkTemplate(&at, &t.Spec)
				return errs
			},
			Columns: kind.Columns("Name", "Age"), Row: func(t template) []any { return []any{t.Name, kind.Age(t)} },
		}.Resource(),
		kind.Definition[resourcev1.ResourceSlice, slice]{
			Group: group, Version: "v1", Plural: "resourceslices", Cluster: true, Unconditional: true,
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Defaults: defaultSlice, Prepare: prepareSlice, Validate: validateSlice, Warnings: warnOfSlice,
			FieldSelectorMessage: "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: %s",
			Columns:              kind.Columns("Name", "Node", "Driver", "Pool", "Age"),
			Row: func(s slice) []any {
				return []any{s.Name, kind.Value(s.Spec.NodeName), s.Spec.Driver, s.Spec.Pool.Name, kind.Age(s)}
			},
			Selectable: selectSlices(),
		}.Resource(),
		taintRules(),
	}
}

// defaultClaim fills in requests, and the tolerations of what is allocated.
func defaultClaim(c claim) {
	defaultDevices(&c.Spec.Devices)
	if a := c.Status.Allocation; a != nil {
		for i := range a.Devices.Results {
			defaultDeviceTolerations(a.Devices.Results[i].Tolerations)
		}
	}
}

func defaultDevices(d *resourcev1.DeviceClaim) {
	for i := range d.Requests {
		r := &d.Requests[i]
		if e := r.Exactly; e != nil {
			kind.OrDefault(&e.AllocationMode, resourcev1.DeviceAllocationModeExactCount)
			if e.AllocationMode == resourcev1.DeviceAllocationModeExactCount {
				kind.OrDefault(&e.Count, 1)
			}
			defaultDeviceTolerations(e.Tolerations)
		}
		for j := range r.FirstAvailable {
			s := &r.FirstAvailable[j]
			kind.OrDefault(&s.AllocationMode, resourcev1.DeviceAllocationModeExactCount)
			if s.AllocationMode == resourcev1.DeviceAllocationModeExactCount {
				kind.OrDefault(&s.Count, 1)
			}
			defaultDeviceTolerations(s.Tolerations)
		}
	}
}

func defaultDeviceTolerations(list []resourcev1.DeviceToleration) {
	for i := range list {
		kind.OrDefault(&list[i].Operator, resourcev1.DeviceTolerationOpEqual)
	}
}

// claimState sums up what has become of a claim.
func claimState(c *resourcev1.ResourceClaim) string {
	var states []string
	if c.DeletionTimestamp != nil {
		states = append(states, "deleted")
	}
	switch {
	case c.Status.Allocation == nil && c.DeletionTimestamp == nil:
		states = append(states, "pending")
	case c.Status.Allocation != nil:
		states = append(states, "allocated")
		if len(c.Status.ReservedFor) > 0 {
			states = append(states, "reserved")
		}
	}
	return strings.Join(states, ",")
}
