// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"testing"

	"github.com/steer-dev/steer/controlplane"
)

// startedPlane is a control plane that listens until the test ends.
func startedPlane(t *testing.T) *controlplane.Plane {
	t.Helper()
	plane, stop, err := StartPlane(t.Context(), controlplane.Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return plane
}
