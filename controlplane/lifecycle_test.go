// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"testing"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/internal/lifecycletest"
)

func TestPlaneKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]controlplane.Options{"InProcess": {}, "Listening": {Listen: "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lifecycletest.RunStarted(t, func(t *testing.T) lifecycletest.Started {
				plane, err := controlplane.New(o)
				if err != nil {
					t.Error(err)
				}
				return lifecycletest.Started{
					Start: plane.Start, Stop: func() error { return plane.Stop(context.Background()) },
					ErrStopped: controlplane.ErrStopped, Outlives: true,
				}
			})
		})
	}
}
