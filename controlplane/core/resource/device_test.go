// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/steer-dev/steer/apiserver/auth"
)

// TestIsVersionAcceptsSemverOnly holds what is taken for a version of a device.
func TestIsVersionAcceptsSemverOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1.2.3": true, "0.0.0": true, "10.20.30": true, "1.2.3-rc.1": true, "1.2.3-0": true, "1.2.3--": true, "1.2.3-01a": true,
		"1.2.3+5": true, "1.2.3+05": true, "1.2.3+a-b.c": true, "1.2.3-rc+5": true, "1.2.3-a-b": true, "1.2.3+5-6": true,
		"": false, "1": false, "1.2": false, "1.2.3.4": false, "01.2.3": false, "1.2.x": false, "v1.2.3": false, "1.2.3-": false,
		"1.2.3-01": false, "1.2.3-a..b": false, "1.2.3+": false, "1.2.3+a+b": false, "1.2.3-é": false, " 1.2.3": false, "1..3": false,
	} {
		if got := isVersion(text); got != want {
			t.Errorf("isVersion(%q) = %v", text, got)
		}
	}
}

// TestShortenedBoundsLongKeys holds that a path does not repeat a key of any length.
func TestShortenedBoundsLongKeys(t *testing.T) {
	t.Parallel()
	if key := strings.Repeat("a", 96); shortened(key) != key {
		t.Error("a key that fits is shortened")
	}
	key := "first" + strings.Repeat("a", 1000) + "last"
	got := shortened(key)
	if len(got) != 96 || !strings.HasPrefix(got, "firsta") || !strings.HasSuffix(got, "alast") || !strings.Contains(got, "a...a") {
		t.Errorf("shortened to %q", got)
	}
}

// TestAccessRequiresTheNodeOfTheClaim holds whom the verbs with the prefix
// associated-node are for.
func TestAccessRequiresTheNodeOfTheClaim(t *testing.T) {
	t.Parallel()
	const account = "system:serviceaccount:default:driver"
	on := func(nodes ...string) map[string][]string {
		return map[string][]string{"authentication.kubernetes.io/node-name": nodes}
	}
	for name, c := range map[string]struct {
		user auth.User
		node string
		want bool
	}{
		"on the node":        {auth.User{Name: account, Extra: on("n")}, "n", true},
		"on another":         {auth.User{Name: account, Extra: on("m")}, "n", false},
		"on two":             {auth.User{Name: account, Extra: on("n", "m")}, "n", false},
		"on none":            {auth.User{Name: account}, "n", false},
		"allocated anywhere": {auth.User{Name: account, Extra: on("")}, "", false},
		"no service account": {auth.User{Name: "driver", Extra: on("n")}, "n", false},
		"no node's name":     {auth.User{Name: account, Extra: on("a b")}, "a b", false},
	} {
		if got := runsOn(&c.user, c.node); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestDeviceStatusIsDroppedWithItsAllocation holds that nothing is said any longer of
// devices that a claim has given back.
func TestDeviceStatusIsDroppedWithItsAllocation(t *testing.T) {
	t.Parallel()
	status := func(devices ...string) *resourcev1.AllocationResult {
		a := &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{}}
		for _, name := range devices {
			a.Devices.Results = append(a.Devices.Results, resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: name})
		}
		return a
	}
	old, now := &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaim{}
	old.Status.Allocation, now.Status.Allocation = status("kept", "gone"), status("kept")
	for _, name := range []string{"kept", "gone", "never"} {
		now.Status.Devices = append(now.Status.Devices, resourcev1.AllocatedDeviceStatus{Driver: "d", Pool: "p", Device: name})
	}
	prepareClaimStatus(context.Background(), now, old)
	var left []string
	for _, d := range now.Status.Devices {
		left = append(left, d.Device)
	}
	if got := strings.Join(left, " "); got != "kept never" {
		t.Errorf("left: %s", got)
	}
}
