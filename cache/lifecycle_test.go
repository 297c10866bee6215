// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/internal/lifecycletest"
)

func TestCacheKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunStarted(t, func(t *testing.T) lifecycletest.Started {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Error(err)
		}
		log := slog.New(slog.DiscardHandler)
		// A server without goroutines: those of the cache are counted.
		server := canned{list: podList(t, 1)}
		live, err := client.New(&rest.Config{Host: "http://canned.invalid", Transport: server}, client.Options{Scheme: scheme, Log: log})
		if err != nil {
			t.Error(err)
		}
		c, err := cache.New(live, cache.Options{Log: log})
		if err != nil {
			t.Error(err)
		}
		if _, err := c.Informer(&corev1.Pod{}); err != nil {
			t.Error(err)
		}
		return lifecycletest.Started{
			Start: c.Start, Stop: func() error { c.Stop(); return nil },
			Use:        func(ctx context.Context) error { return c.List(ctx, &corev1.PodList{}) },
			ErrStopped: cache.ErrStopped,
		}
	})
}
