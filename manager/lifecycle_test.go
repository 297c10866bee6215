// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
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

// TestManagerThatEndsBeforeItsCachesSyncRefusesRunnables is about a manager that has
// never run what it was given.
func TestElectorKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	cfg := steertest.New(t, steertest.Options{}).Config
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	var leases atomic.Int32
	lifecycletest.RunBlocking(t, func(t *testing.T) lifecycletest.Blocking {
		m, err := manager.New(cfg, manager.Options{
			Name: "test", Scheme: scheme, Log: slog.New(slog.DiscardHandler),
			Election: manager.Election{Enabled: true, Namespace: "default", Lease: fmt.Sprint("lease-", leases.Add(1))},
		})
		if err != nil {
			t.Error(err)
		}
		elected := make(chan struct{})
		return lifecycletest.Blocking{
			Run:        func(ctx context.Context) error { return manager.Elect(ctx, m, func() { close(elected) }) },
			ErrStarted: manager.ErrStarted,
			Running: func(ctx context.Context) error {
				select {
				case <-elected:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
			Use: func(ctx context.Context) error {
				return m.Live().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}})
			},
			ErrStopped: manager.ErrNotLeader,
		}
	})
}

func TestManagerThatEndsBeforeItsCachesSyncRefusesRunnables(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{Name: "test", Scheme: scheme, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Cache().Informer(&corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(manager.RunnableFunc(func(context.Context) error { return nil })); !errors.Is(err, manager.ErrStopping) {
		t.Errorf("a runnable that will never run is taken: %v", err)
	}
}
