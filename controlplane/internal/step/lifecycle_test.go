// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"

	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/storage"
)

func TestRunnerKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunBlocking(t, func(*testing.T) lifecycletest.Blocking {
		b := newBench(storage.MemoryOptions{})
		return lifecycletest.Blocking{
			Run:     b.runner.Run,
			Running: func(ctx context.Context) error { return b.runner.Idle(ctx, 0) },
		}
	})
}
