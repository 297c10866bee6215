// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/trace"
)

// TestIdsOfReconcilesFollowFromSeedAndInstance lets two processes with one seed have ids of
// their own, and one that is run again the same.
func TestIdsOfReconcilesFollowFromSeedAndInstance(t *testing.T) {
	t.Parallel()
	ids := map[uint64]int{}
	for _, instance := range []string{"a", "a", "b"} {
		m, err := manager.New(&rest.Config{Host: "https://in-process.invalid"}, manager.Options{Name: "x", Instance: instance, Seed: 1, Scheme: coreScheme(t)})
		if err != nil {
			t.Fatal(err)
		}
		var a trace.Active
		m.Recorder().Begin(&a, trace.Start{Controller: "c"})
		a.End(trace.End{})
		for r := range m.Recorder().Records() {
			ids[r.ID.Recorder]++
		}
	}
	if len(ids) != 2 {
		t.Errorf("recorders of a, a and b: %v", ids)
	}
}
