// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/cache/internal/fakeapi"
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
		live, err := client.New(fakeapi.New().Config(), client.Options{Scheme: scheme, JSONOnly: true, Log: log})
		if err != nil {
			t.Error(err)
		}
		c, err := cache.New(live, cache.Options{Log: log})
		if err != nil {
			t.Error(err)
		}
		if _, err := c.Informer(&corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
		return lifecycletest.Started{
			Start: c.Start, Stop: func() error { c.Stop(); return nil },
			Use:        func(ctx context.Context) error { return c.List(ctx, &corev1.ConfigMapList{}) },
			ErrStopped: cache.ErrStopped,
		}
	})
}
