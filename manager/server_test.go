// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"

	"github.com/steer-dev/steer/internal/lifecycletest"
)

func TestServersKeepTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunStarted(t, func(t *testing.T) lifecycletest.Started {
		m := newManager(t, func(o *Options) {
			o.HealthAddress, o.Metrics.Address, o.DebugAddress = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		})
		probe := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return lifecycletest.Started{
			Start: func(ctx context.Context) error { return m.servers.start(ctx, m) },
			Stop:  func() error { m.servers.stop(); return nil },
			Use: func(ctx context.Context) error {
				m.servers.mu.Lock()
				at := m.servers.health
				m.servers.mu.Unlock()
				if at == nil {
					return ErrStopping // it has never listened
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/healthz", http.NoBody)
				if err != nil {
					return err
				}
				answer, err := probe.Do(r)
				if errors.Is(err, syscall.ECONNREFUSED) {
					return ErrStopping
				}
				if err != nil {
					return err
				}
				return answer.Body.Close()
			},
			Once: true, ErrStarted: ErrStarted, ErrStopped: ErrStopping, Outlives: true,
		}
	})
}
