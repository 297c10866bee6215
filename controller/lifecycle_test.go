// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/queue"
)

func TestControllerKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunBlocking(t, func(t *testing.T) lifecycletest.Blocking {
		m := newFake()
		reconciled := make(chan struct{}, 1)
		err := controller.Add(m, controller.Func[*Web](func(context.Context, *Web) (controller.Result, error) {
			reconciled <- struct{}{}
			return controller.Done(), nil
		}), controller.Owns[*corev1.ConfigMap](), controller.From(controller.Poll(time.Hour, func(context.Context) ([]controller.Request, error) {
			return nil, nil
		})))
		if err != nil {
			t.Error(err)
		}
		m.create(t, web("a"))
		return lifecycletest.Blocking{
			Run: m.parts[0].Start, ErrStarted: controller.ErrStarted,
			Running: func(ctx context.Context) error {
				select {
				case <-reconciled:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
		}
	})
}

func TestSourcesKeepTheLifecycle(t *testing.T) {
	t.Parallel()
	kind := func(m *fake) (controller.Source[controller.Request], error) {
		return controller.Kind(m.server, &Web{}, controller.Self[*Web]())
	}
	for name, open := range map[string]func(m *fake) (controller.Source[controller.Request], error){
		"Kind": kind,
		"Channel": func(*fake) (controller.Source[controller.Request], error) {
			return controller.Channel(make(chan controller.Request)), nil
		},
		"Poll": func(*fake) (controller.Source[controller.Request], error) {
			return controller.Poll(time.Millisecond, func(context.Context) ([]controller.Request, error) { return nil, nil }), nil
		},
		"References": func(m *fake) (controller.Source[controller.Request], error) {
			return controller.References[*corev1.ConfigMap](pageKeys).Open(&Web{}, m.Deps())
		},
		"WatchSet": func(m *fake) (controller.Source[controller.Request], error) {
			set := &controller.WatchSet[controller.Request]{}
			return set, set.Add("webs", func() (controller.Source[controller.Request], error) { return kind(m) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lifecycletest.RunStarted(t, func(t *testing.T) lifecycletest.Started {
				m := newFake()
				m.create(t, web("a"))
				source, err := open(m)
				if err != nil {
					t.Error(err)
				}
				start := func(ctx context.Context) error {
					return source.Start(ctx, func(controller.Request, queue.AddOptions) {})
				}
				return lifecycletest.Started{
					Start: start, Stop: func() error { source.Stop(); return nil },
					Once: true, ErrStarted: controller.ErrStarted, ErrStopped: controller.ErrStopped,
				}
			})
		})
	}
}

func TestKindSourceDoesNotSyncBeforeItsStart(t *testing.T) {
	t.Parallel()
	source, err := controller.Kind(newFake().server, client.Object(&Web{}), controller.Self[client.Object]())
	if err != nil {
		t.Fatal(err)
	}
	defer source.Stop()
	if err := source.WaitForSync(t.Context()); err == nil {
		t.Error("a source that nothing has started is in sync")
	}
}
