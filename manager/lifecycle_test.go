// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"testing"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/lifecycletest"
)

func TestManagerKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunBlocking(t, func(t *testing.T) lifecycletest.Blocking {
		m := newManager(t, func(o *Options) { o.HealthAddress = "127.0.0.1:0" })
		running := make(chan struct{})
		idle := RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); return nil })
		for _, r := range []controller.Runnable{OnEveryReplica(idle), RunnableFunc(func(ctx context.Context) error {
			close(running)
			<-ctx.Done()
			return nil
		})} {
			if err := m.Add(r); err != nil {
				t.Error(err)
			}
		}
		return lifecycletest.Blocking{
			Run: m.Start, ErrStarted: ErrStarted,
			Running: func(ctx context.Context) error {
				select {
				case <-running:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
			Use: func(context.Context) error { return m.Add(idle) }, ErrStopped: ErrStopping,
		}
	})
}
