// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
)

// TestManagerThatHasEndedLeavesNoConnection runs managers over HTTP/2 and HTTP/1.1, with
// a watch, an election and a write, and counts the connections that the server still has.
func TestManagerThatHasEndedLeavesNoConnection(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP2": true, "HTTP1": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newEnv(t, corev1.AddToScheme)
			opened, closed := make(chan struct{}, 100), make(chan struct{}, 100)
			cfg := overTLS(t, env.Config, http2, func(_ net.Conn, s http.ConnState) {
				switch s {
				case http.StateNew:
					opened <- struct{}{}
				case http.StateClosed, http.StateHijacked:
					closed <- struct{}{}
				}
			})
			runOnce(t, cfg, manager.Options{
				Election: manager.Election{Enabled: true, Namespace: "default"},
			})
			if len(opened) == 0 {
				t.Fatal("the manager has opened no connection")
			}
			for range len(opened) {
				select {
				case <-closed:
				case <-time.After(time.Minute):
					t.Fatalf("of %d connections some are still open a minute after the manager", len(opened))
				}
			}
		})
	}
}

// overTLS puts a server in front of cfg, which passes all requests on, and returns its
// config.
func overTLS(t *testing.T, cfg *rest.Config, http2 bool, state func(net.Conn, http.ConnState)) *rest.Config {
	t.Helper()
	to, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: cfg.Transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	})
	server.EnableHTTP2 = http2
	server.Config.ConnState = state
	server.StartTLS()
	t.Cleanup(server.Close)
	out := &rest.Config{Host: server.URL}
	out.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return out
}

// runOnce runs a manager with one controller until it has reconciled an object.
func runOnce(t *testing.T, cfg *rest.Config, o manager.Options) {
	t.Helper()
	m := newOperator(t, cfg, o)
	ctx, stop := context.WithCancel(t.Context())
	err := controller.Add(m, controller.Func[*corev1.Namespace](func(context.Context, *corev1.Namespace) (controller.Result, error) {
		stop()
		return controller.Done(), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(ctx); err != nil {
		t.Fatal(err)
	}
}
