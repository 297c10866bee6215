// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package declared_test

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/core/declared"
)

// TestRulesAreThoseOfTheMarkers has one case for each form of a rule.
func TestRulesAreThoseOfTheMarkers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	request := func(names ...string) (list []resourcev1.DeviceRequest) {
		for _, name := range names {
			list = append(list, resourcev1.DeviceRequest{Name: name})
		}
		return list
	}
	for _, c := range []struct {
		name     string
		now, old any
		want     []string
	}{
		{name: "nothing to say", now: &resourcev1.DeviceClaim{Requests: request("a", "b")}},
		{name: "too many", now: &resourcev1.DeviceClaim{Requests: make([]resourcev1.DeviceRequest, 33)},
			want: []string{`requests: Too many: 33: must have at most 32 items`}},
		{name: "twice by a key", now: &resourcev1.DeviceClaim{Requests: request("a", "b", "a", "a")},
			want: []string{`requests[2]: Duplicate value: {"name":"a"}`, `requests[3]: Duplicate value: {"name":"a"}`}},
		{name: "twice by value", now: &resourcev1.DeviceConstraint{Requests: []string{"a", "a"}},
			want: []string{`requests[1]: Duplicate value: "a"`}},
		{name: "required, of each element", now: &resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{{}}},
			want: []string{`sharedCounters[0].name: Required value`, `sharedCounters[0].counters: Required value`}},
		{name: "format, of a value and of each key", now: &resourcev1.CounterSet{Name: "A_", Counters: map[string]resourcev1.Counter{"ok": {}, "B_": {}}},
			want: []string{`name: Invalid value: "A_"`, `counters: Invalid value: "B_"`}},
		{name: "format behind a pointer", now: &resourcev1.AllocatedDeviceStatus{ShareID: pointer("x")},
			want: []string{`shareID: Invalid value: "x"`}},
		{name: "optional", now: &resourcev1.AllocatedDeviceStatus{}},
		{name: "longest, in characters and bytes", now: &resourcev1.NetworkDeviceData{HardwareAddress: strings.Repeat("ä", 65)},
			want: []string{`hardwareAddress: Too long: may not be more than 128 bytes`}},
		{name: "a text of some, of an embedded struct beside it", now: &resourcev1.DeviceAllocationConfiguration{
			Source:              "Nobody",
			DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: long}},
		}, want: []string{`source: Unsupported value: "Nobody": supported values: "FromClaim", "FromClass"`,
			`opaque.driver: Too long: may not be more than 63 characters`}},
		{name: "none of a union", now: &resourcev1.Device{Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"a": {}}},
			want: []string{`attributes[a]: Invalid value: "": must specify one of: `}},
		{name: "two of a union", now: &resourcev1.DeviceAttribute{IntValue: pointer(int64(1)), BoolValue: pointer(true)},
			want: []string{`: Invalid value: "{int, bool}": must specify exactly one of: `}},
		{name: "a rule of metadata", now: &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "A_"}},
			want: []string{`metadata.name: Invalid value: "A_"`}},
		{name: "immutable", now: &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: request("a", "a")}}}, old: &resourcev1.ResourceClaim{},
			want: []string{`spec: Invalid value: null: field is immutable`}},
		{name: "not to be modified", now: &resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{AllocationTimestamp: &metav1.Time{}}},
			old:  &resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{NodeSelector: nil, Devices: resourcev1.DeviceAllocationResult{Config: []resourcev1.DeviceAllocationConfiguration{{}}}}},
			want: []string{`allocation: Invalid value: null: field cannot be modified once set`}},
		{name: "not to be modified, but to be set", now: &resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}}, old: &resourcev1.ResourceClaimStatus{}},
		{name: "what did not change", now: &resourcev1.DeviceClaim{Requests: request("a", "a")}, old: &resourcev1.DeviceClaim{Requests: request("a", "a")}},
		{name: "an element that did not change", now: &resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{{Name: "b"}, {Name: "a"}}},
			old:  &resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{{Name: "a"}}},
			want: []string{`sharedCounters[0].counters: Required value`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			errs := declared.Of(reflect.TypeOf(c.now).Elem()).Validate(c.now, c.old)
			if len(errs) != len(c.want) {
				t.Fatalf("%d errors, want %d: %v", len(errs), len(c.want), errs)
			}
			for i, err := range errs {
				if !strings.HasPrefix(err.Error(), c.want[i]) {
					t.Errorf("error %d: %v, want %s", i, err, c.want[i])
				}
			}
		})
	}
}

func TestATypeWithoutRulesHasNone(t *testing.T) {
	t.Parallel()
	if r := declared.Of(reflect.TypeFor[metav1.ObjectMeta]()); r != nil || r.Validate(&metav1.ObjectMeta{}, nil) != nil {
		t.Error("metadata has rules of its own, which are not declared")
	}
}

// TestAValidObjectCostsNoMemory: Pods are validated so with every write.
func TestAValidObjectCostsNoMemory(t *testing.T) {
	rules, pod := declared.Of(reflect.TypeFor[corev1.Pod]()), &corev1.Pod{}
	if n := testing.AllocsPerRun(100, func() { rules.Validate(pod, nil); rules.Validate(pod, pod) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func pointer[T any](v T) *T { return &v }
