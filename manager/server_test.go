// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"

	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/webhook"
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

// Each server has connections of its own, as many as the option says.
func TestConnectionsOfEachServerAreBounded(t *testing.T) {
	t.Parallel()
	m := newManager(t, func(o *Options) {
		o.HealthAddress, o.Metrics.Address, o.DebugAddress, o.Webhooks.Address = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		o.MaxConnections = 2
	})
	allow := webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Allowed() })
	if err := errors.Join(webhook.AddHandler(m, "/h", allow), m.servers.start(t.Context(), m)); err != nil {
		t.Fatal(err)
	}
	defer m.servers.stop()
	stopWebhooks := m.serveWebhooks(t.Context(), func(err error) { t.Error(err) })
	defer stopWebhooks()
	for m.webhooks.Addr() == nil {
		runtime.Gosched()
	}
	for path, at := range map[string]net.Addr{"/healthz": m.servers.health, "/metrics": m.servers.scraping, "/debug/pprof/": m.servers.debugging, "/": m.webhooks.Addr()} {
		var clients []net.Conn
		for range 3 {
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if at == m.webhooks.Addr() {
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) // it is about who is answered
			}
			clients = append(clients, c)
		}
		for _, i := range []int{2, 0, 1} {
			_, err := io.WriteString(clients[i], "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if err == nil {
				_, err = clients[i].Read(make([]byte, 1))
			}
			if answered := err == nil; answered != (i < 2) {
				t.Errorf("%s over connection %d of two: answered is %t (%v)", path, i, answered, err)
			}
		}
	}
}
