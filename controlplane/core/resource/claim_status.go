// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"math"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// id of a device, or of a share of it. Errors show it.
type id struct{ Driver, Pool, Device, ShareID string }

func idOfStatus(d *resourcev1.AllocatedDeviceStatus) id {
	return id{d.Driver, d.Pool, d.Device, kind.Value(d.ShareID)}
}

// allocated are the devices that a claim has.
func allocated(s *resourcev1.ResourceClaimStatus) sets.Set[id] {
	out := sets.New[id]()
	if s.Allocation != nil {
		for i := range s.Allocation.Devices.Results {
			r := &s.Allocation.Devices.Results[i]
			out.Insert(id{r.Driver, r.Pool, r.Device, string(kind.Value(r.ShareID))})
		}
	}
	return out
}

// prepareClaimStatus drops what is said of devices that the claim has no longer.
func prepareClaimStatus(_ context.Context, c, old claim) {
	gone := allocated(&old.Status).Difference(allocated(&c.Status))
	c.Status.Devices = slices.DeleteFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool { return gone.Has(idOfStatus(&d)) })
	if len(c.Status.Devices) == 0 {
		c.Status.Devices = nil
	}
}

func validateClaimStatus(c, old claim) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f, s, known := root.Child("status"), &c.Status, requestsOf(&c.Spec.Devices)
	checkList(&f, "reservedFor", s.ReservedFor, resourcev1.ResourceClaimReservedForMaxSize,
		func(at *valid.Field, r *resourcev1.ResourceClaimConsumerReference) {
			at.NonEmpty("resource", r.Resource)
			at.NonEmpty("name", r.Name)
			at.NonEmpty("uid", string(r.UID))
		})
	has := allocated(s)
	checkList(&f, "devices", s.Devices, math.MaxInt, func(at *valid.Field, d *resourcev1.AllocatedDeviceStatus) { checkDeviceStatus(at, d, has) })
	switch {
	case len(s.ReservedFor) == 0:
	case s.Allocation == nil:
		f.Forbidden("reservedFor", "may not be specified when `allocated` is not set")
	case c.DeletionTimestamp != nil && sets.New(s.ReservedFor...).Difference(sets.New(old.Status.ReservedFor...)).Len() > 0:
		f.Forbidden("reservedFor", "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set")
	}
	if s.Allocation != nil && old.Status.Allocation == nil {
		at := f.Child("allocation")
		known.checkAllocation(&at, s.Allocation)
	}
	return errs
}

func (r requests) checkAllocation(f *valid.Field, a *resourcev1.AllocationResult) {
	const fromClassAndClaim = 2
	devices := f.Child("devices")
	checkList(&devices, "results", a.Devices.Results, resourcev1.AllocationResultsMaxSize, r.checkResult)
	checkList(&devices, "config", a.Devices.Config, fromClassAndClaim*mostConfigs, func(at *valid.Field, c *resourcev1.DeviceAllocationConfiguration) {
		checkList(at, "requests", c.Requests, mostRequests, r.checkName)
		checkConfig(at, &c.DeviceConfiguration)
	})
	if a.NodeSelector != nil {
		at := f.Child("nodeSelector")
		at.NodeSelector(a.NodeSelector, true)
	}
}

func (r requests) checkResult(f *valid.Field, a *resourcev1.DeviceRequestAllocationResult) {
	request := f.Child("request")
	r.checkName(&request, &a.Request)
	f.DNSLabel("device", a.Device)
	checkBinding(f, a.BindingConditions, a.BindingFailureConditions)
	tolerations := f.Child("tolerations")
	for i := range a.Tolerations {
		at := tolerations.Index(i)
		checkToleration(&at, &a.Tolerations[i])
	}
}

func checkDeviceStatus(f *valid.Field, d *resourcev1.AllocatedDeviceStatus, has sets.Set[id]) {
	checkDriver(f, "driver", d.Driver)
	checkPoolName(f, "pool", d.Pool)
	f.DNSLabel("device", d.Device)
	if name := idOfStatus(d); !has.Has(name) {
		f.Invalid(valid.Self, name, "must be an allocated device in the claim")
	}
	if n := len(d.Conditions); n > resourcev1.AllocatedDeviceStatusMaxConditions {
		f.TooMany("conditions", n, resourcev1.AllocatedDeviceStatusMaxConditions)
	}
	f.Add(metavalidation.ValidateConditions(d.Conditions, f.PathOf("conditions"))...)
	if d.Data != nil && len(d.Data.Raw) > 0 {
		checkParameters(f, "data", *d.Data, resourcev1.AllocatedDeviceStatusDataMaxLength)
	}
	if n := d.NetworkData; n != nil {
		at := f.Child("networkData")
		checkList(&at, "ips", n.IPs, resourcev1.NetworkDeviceDataMaxIPs, func(at *valid.Field, ip *string) {
			at.Add(validation.IsValidInterfaceAddress(at.Path(), *ip)...)
		})
	}
}

// checkPoolName checks subdomains between slashes.
func checkPoolName(f *valid.Field, name, pool string) {
	if !f.NonEmpty(name, pool) {
		return
	}
	if len(pool) > resourcev1.PoolNameMaxLength {
		f.TooLong(name, resourcev1.PoolNameMaxLength)
	}
	for part := range strings.SplitSeq(pool, "/") {
		f.Subdomain(name, part)
	}
}

// checkBinding checks the conditions that a device has to meet before Pods are bound,
// and those that say that it never will.
func checkBinding(f *valid.Field, conditions, failures []string) {
	const names, failureNames = "bindingConditions", "bindingFailureConditions"
	key := func(at *valid.Field, s *string) { at.LabelKey(valid.Self, *s) }
	checkDistinct(f, names, conditions, resourcev1.BindingConditionsMaxSize, key)
	checkDistinct(f, failureNames, failures, resourcev1.BindingFailureConditionsMaxSize, key)
	list := f.Child(failureNames)
	for i, name := range failures {
		if slices.Contains(conditions, name) {
			at := list.Index(i)
			at.Invalid(valid.Self, name, failureNames+" must not overlap with "+names)
		}
	}
	switch {
	case len(conditions) == 0 && len(failures) > 0:
		f.Invalid(names, conditions, names+" are required to use "+failureNames)
	case len(conditions) > 0 && len(failures) == 0:
		f.Invalid(failureNames, failures, failureNames+" are required to use "+names)
	}
}

// checkDistinct is checkSet for a list of which also one that is too long is searched for
// what is there twice.
func checkDistinct(f *valid.Field, name string, values []string, most int, check func(*valid.Field, *string)) {
	checkList(f, name, values, most, check)
	checkUnique(f, name, values, itself)
}
