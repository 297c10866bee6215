// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/steer-dev/steer/storage"
)

// Buckets of claims of devices, and of their classes.
const (
	deviceClaims  = resourcev1.GroupName + "/resourceclaims"
	deviceClasses = resourcev1.GroupName + "/deviceclasses"
)

// classes of devices, with the extended resource that each stands for; empty: none.
type classes map[string]string

// classes returns those that the meter needs, and nil if it needs none.
func (m *meter) classes(view storage.View) classes {
	if m.count != "count/resourceclaims."+resourcev1.GroupName {
		return nil
	}
	out := classes{}
	for rec := range view.Ascend(deviceClasses, "", "") {
		var class struct {
			Spec struct{ ExtendedResourceName string }
		}
		if json.Unmarshal(rec.Value, &class) == nil {
			out[rec.Key.Name] = class.Spec.ExtendedResourceName
		}
	}
	return out
}

// standsFor reports whether a class has devices that are an extended resource: the one that
// it names, or the one that is named after it.
func (c classes) standsFor(extended string) bool {
	if class, implicit := strings.CutPrefix(extended, resourcev1.ResourceDeviceClassPrefix); implicit {
		_, known := c[class]
		return known
	}
	for _, name := range c {
		if name != "" && name == extended {
			return true
		}
	}
	return false
}

func countsOfDevices(name corev1.ResourceName, by classes) bool {
	if strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass) {
		return true
	}
	extended, isRequest := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return isRequest && by.standsFor(extended)
}

// usageOfDevices adds how many devices of each class a claim may get at most, under all
// the names that quotas have for them.
func usageOfDevices(obj any, in setting, to corev1.ResourceList) {
	most := map[string]int64{}
	for i := range obj.(*resourcev1.ResourceClaim).Spec.Devices.Requests {
		r := &obj.(*resourcev1.ResourceClaim).Spec.Devices.Requests[i]
		if e := r.Exactly; e != nil && len(r.FirstAvailable) == 0 {
			most[e.DeviceClassName] += devices(e.AllocationMode, e.Count)
			continue
		}
		one := map[string]int64{} // of the alternatives, which one it will be is not known
		for j := range r.FirstAvailable {
			s := &r.FirstAvailable[j]
			one[s.DeviceClassName] = max(one[s.DeviceClassName], devices(s.AllocationMode, s.Count))
		}
		for class, n := range one {
			most[class] += n
		}
	}
	for class, n := range most {
		amount := *resource.NewQuantity(n, resource.DecimalSI)
		to[corev1.ResourceName(class+corev1.ResourceClaimsPerClass)] = amount
		if n == 0 {
			continue
		}
		to[corev1.ResourceName(corev1.ResourceImplicitExtendedClaimsPerClass+class)] = amount
		if extended := in.classes[class]; extended != "" {
			name := corev1.ResourceName(corev1.DefaultResourceRequestsPrefix + extended)
			sum := to[name].DeepCopy() // more than one class may stand for it
			sum.Add(amount)
			to[name] = sum
		}
	}
}

func devices(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	switch mode {
	case resourcev1.DeviceAllocationModeExactCount:
		return count
	case resourcev1.DeviceAllocationModeAll:
		return resourcev1.AllocationResultsMaxSize
	}
	return 0
}
