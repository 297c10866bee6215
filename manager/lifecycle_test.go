// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"log/slog"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/manager"
)

func TestManagerKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunBlocking(t, func(t *testing.T) lifecycletest.Blocking {
		m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
			Name: "test", Scheme: runtime.NewScheme(), Log: slog.New(slog.DiscardHandler), HealthAddress: "127.0.0.1:0",
		})
		if err != nil {
			t.Error(err)
		}
		running := make(chan struct{})
		idle := manager.RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); return nil })
		for _, r := range []controller.Runnable{manager.OnEveryReplica(idle), manager.RunnableFunc(func(ctx context.Context) error {
			close(running)
			<-ctx.Done()
			return nil
		})} {
			if err := m.Add(r); err != nil {
				t.Error(err)
			}
		}
		return lifecycletest.Blocking{
			Run: m.Start, ErrStarted: manager.ErrStarted,
			Running: func(ctx context.Context) error {
				select {
				case <-running:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
			Use: func(context.Context) error { return m.Add(idle) }, ErrStopped: manager.ErrStopping,
		}
	})
}
