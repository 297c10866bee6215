// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"testing"

	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/otel"
)

func TestExporterKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunBlocking(t, func(t *testing.T) lifecycletest.Blocking {
		exporter, err := otel.New(trace.NewRecorder(trace.Options{}), otel.Options{})
		if err != nil {
			t.Error(err)
		}
		return lifecycletest.Blocking{Run: exporter.Start, ErrStarted: otel.ErrStarted}
	})
}
