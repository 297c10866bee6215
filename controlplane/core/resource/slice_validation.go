// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// defaultSlice says since when devices are tainted.
func defaultSlice(s slice) {
	for i := range s.Spec.Devices {
		for j := range s.Spec.Devices[i].Taints {
			if t := &s.Spec.Devices[i].Taints[j]; t.TimeAdded == nil {
				now := metav1.Now()
				t.TimeAdded = &now
			}
		}
	}
}

// prepareSlice counts the generation, and drops what is of features that are off by
// default: attributes with several values, and resources of nodes that devices stand
// for. In this order: a change that is dropped counts.
func prepareSlice(_ context.Context, s, old slice) {
	switch {
	case old == nil:
		s.Generation = 1
	case !equality.Semantic.DeepEqual(s.Spec, old.Spec):
		s.Generation = old.Generation + 1
	default:
		s.Generation = old.Generation
	}
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		clearNodeAllocatable(d)
		for name, a := range d.Attributes {
			a.IntValues, a.BoolValues, a.StringValues, a.VersionValues = nil, nil, nil, nil
			d.Attributes[name] = a
		}
	}
}

// clearNodeAllocatable clears the field of feature DRANodeAllocatableResources by
// its name: v0.37 of k8s.io/api has another one in its place.
func clearNodeAllocatable(d *resourcev1.Device) {
	fields := reflect.ValueOf(d).Elem()
	for _, name := range []string{"NodeAllocatableResourceMappings", "NodeAllocatableResources"} {
		if f := fields.FieldByName(name); f.IsValid() {
			f.SetZero()
		}
	}
}

func warnOfSlice(s, _ slice) []string {
	if driver := s.Spec.Driver; driver != strings.ToLower(driver) {
		return []string{fmt.Sprintf("spec.driver: driver names should be lowercase; %q contains uppercase characters", driver)}
	}
	return nil
}

func validateSlice(s, old slice) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f, spec := root.Child("spec"), &s.Spec
	checkDriver(&f, "driver", spec.Driver)
	pool := f.Child("pool")
	checkPool(&pool, &spec.Pool)
	was := map[string]*resourcev1.Device{}
	if old != nil {
		pool.Unchanged("name", spec.Pool.Name, old.Spec.Pool.Name)
		f.Unchanged("driver", spec.Driver, old.Spec.Driver)
		f.Unchanged("nodeName", spec.NodeName, old.Spec.NodeName)
		for i, d := range slices.Backward(old.Spec.Devices) {
			was[d.Name] = &old.Spec.Devices[i]
		}
	}
	checkNodes(&f, spec)
	if spec.SharedCounters != nil && spec.Devices != nil {
		f.Invalid(valid.Self, "", "only one of `sharedCounters` or `devices` is allowed")
	}
	each := isTrue(spec.PerDeviceNodeSelection)
	if checkBounded(&f, "devices", spec.Devices, mostDevices(spec.Devices), func(at *valid.Field, d *resourcev1.Device) {
		checkDevice(at, d, was[d.Name], each)
	}) {
		checkUnique(&f, "devices", spec.Devices, func(d *resourcev1.Device) string { return d.Name })
	}
	checkList(&f, "sharedCounters", spec.SharedCounters, resourcev1.ResourceSliceMaxCounterSets, func(at *valid.Field, c *resourcev1.CounterSet) {
		checkCounters(at, c.Counters, resourcev1.ResourceSliceMaxCountersPerCounterSet)
	})
	return errs
}

func checkPool(f *valid.Field, p *resourcev1.ResourcePool) {
	checkPoolName(f, "name", p.Name)
	if p.ResourceSliceCount <= 0 {
		f.Invalid("resourceSliceCount", p.ResourceSliceCount, "must be greater than zero")
	}
	if p.Generation < 0 {
		f.Invalid("generation", p.Generation, "must be greater than or equal to zero")
	}
}

// place is how nodes are chosen from which devices can be used.
type place struct {
	name     *string
	selector *corev1.NodeSelector
	all      *bool
}

// check returns the fields by which the place is chosen. empty is the error of a
// name that is.
func (p place) check(f *valid.Field, empty string) []string {
	var set []string
	switch {
	case p.name == nil:
	case *p.name == "":
		f.Invalid("nodeName", "", empty)
	default:
		set = append(set, "`nodeName`")
		f.Subdomain("nodeName", *p.name)
	}
	if p.selector != nil {
		set = append(set, "`nodeSelector`")
		at := f.Child("nodeSelector")
		at.NodeSelector(p.selector, true)
	}
	return chosen(f, "allNodes", p.all, set)
}

// chosen adds a field to those that are set, if it is true.
func chosen(f *valid.Field, name string, value *bool, set []string) []string {
	if isTrue(value) {
		return append(set, "`"+name+"`")
	}
	if value != nil {
		f.Invalid(name, false, "must be either unset or set to true")
	}
	return set
}

// checkNodes checks how the nodes of a slice are chosen: in one of four ways.
func checkNodes(f *valid.Field, s *resourcev1.ResourceSliceSpec) {
	const one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	set := place{s.NodeName, s.NodeSelector, s.AllNodes}.check(f, "must be either unset or set to a non-empty string")
	if n := s.NodeSelector; n != nil && len(n.NodeSelectorTerms) != 1 {
		at := f.Child("nodeSelector")
		at.Invalid("nodeSelectorTerms", valid.Untagged(n.NodeSelectorTerms), "must have exactly one node selector term")
	}
	checkOne(f, chosen(f, "perDeviceNodeSelection", s.PerDeviceNodeSelection, set), one, one+", but multiple fields are set")
}

// checkOne checks that exactly one of some fields is set.
func checkOne(f *valid.Field, set []string, none, several string) {
	switch len(set) {
	case 0:
		f.Required(valid.Self, none)
	case 1:
	default:
		f.Invalid(valid.Self, "{"+strings.Join(set, ", ")+"}", several)
	}
}

// mostDevices is how many devices a slice may have: fewer if they take much to schedule.
func mostDevices(list []resourcev1.Device) int {
	if slices.ContainsFunc(list, func(d resourcev1.Device) bool { return len(d.Taints)+len(d.ConsumesCounters) > 0 }) {
		return resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	return resourcev1.ResourceSliceMaxDevices
}

// checkCounters checks how many there are.
func checkCounters(f *valid.Field, counters map[string]resourcev1.Counter, most int) {
	if n := len(counters); n > most {
		f.TooMany("counters", n, most)
	}
}

func checkDevice(f *valid.Field, d, old *resourcev1.Device, placed bool) {
	const most, mostValues = resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice, resourcev1.ResourceSliceMaxAttributeValuesPerDevice
	f.DNSLabel("name", d.Name)
	if n := len(d.Attributes) + len(d.Capacity); n > most {
		f.Invalid(valid.Self, n, fmt.Sprintf("the total number of attributes and capacities must not exceed %d", most))
	}
	if n := len(d.Attributes); n > mostValues {
		f.Invalid(valid.Self, n, fmt.Sprintf("the total number of attribute values must not exceed %d", mostValues))
	}
	checkNamed(f, "attributes", d.Attributes, checkValue)
	shared := isTrue(d.AllowMultipleAllocations)
	checkNamed(f, "capacity", d.Capacity, func(at *valid.Field, c *resourcev1.DeviceCapacity) {
		switch {
		case c.RequestPolicy == nil:
		case shared:
			policy := at.Child("requestPolicy")
			checkRequestPolicy(&policy, c.RequestPolicy, c.Value)
		default:
			at.Forbidden("requestPolicy", "allowMultipleAllocations must be true")
		}
	})
	if old == nil || !equality.Semantic.DeepEqual(old.Taints, d.Taints) {
		checkBounded(f, "taints", d.Taints, resourcev1.DeviceTaintsMaxLength, checkTaint)
	}
	checkList(f, "consumesCounters", d.ConsumesCounters, resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice, func(at *valid.Field, c *resourcev1.DeviceCounterConsumption) {
		checkCounters(at, c.Counters, resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption)
	})
	switch at := (place{d.NodeName, d.NodeSelector, d.AllNodes}); {
	case placed:
		const one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
		checkOne(f, at.check(f, "must not be empty"), one, one)
	case at != place{}:
		f.Add(field.Invalid(f.Path(), nil, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"))
	}
	checkBinding(f, d.BindingConditions, d.BindingFailureConditions)
}

func checkTaint(f *valid.Field, t *resourcev1.DeviceTaint) {
	f.LabelKey("key", t.Key)
	if t.Value != "" {
		f.Problems("value", t.Value, validation.IsValidLabelValue(t.Value))
	}
}

// checkNamed checks a map of which the keys are names that may have a domain. Errors of
// a key have the path of the map.
func checkNamed[T any](in *valid.Field, name string, m map[resourcev1.QualifiedName]T, check func(at *valid.Field, v *T)) {
	f := in.Child(name)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		checkQualified(&f, "", string(key))
		value, at := m[key], f.Key(shortened(string(key)))
		check(&at, &value)
	}
}

// shortened is the key of an attribute or a capacity in a path: the middle of one that
// is longer than it may be is left out.
func shortened(key string) string {
	const most, ellipsis = resourcev1.DeviceMaxDomainLength + len("/") + resourcev1.DeviceMaxIDLength, "..."
	if len(key) <= most {
		return key
	}
	left := most - len(ellipsis)
	return key[:(left+1)/2] + ellipsis + key[len(key)-left/2:]
}

func selectSlices() []kind.Selectable[slice] {
	return []kind.Selectable[slice]{
		{Path: resourcev1.ResourceSliceSelectorNodeName, Value: func(s slice) string { return kind.Value(s.Spec.NodeName) }},
		kind.Leaf(resourcev1.ResourceSliceSelectorDriver, func(s slice) string { return s.Spec.Driver }),
		kind.Leaf(resourcev1.ResourceSliceSelectorPoolName, func(s slice) string { return s.Spec.Pool.Name }),
	}
}
