// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/internal/connections"
	"github.com/steer-dev/steer/manager/internal/debug"
	"github.com/steer-dev/steer/manager/internal/guard"
)

const (
	// maxScrapes at once; more are told to come back, so that slow scrapers
	// cannot pile up.
	maxScrapes = 10
	// scrapeTimeout ends answers that are not read.
	scrapeTimeout = time.Minute
)

// servers are the HTTP servers of a manager: probes, metrics, debugging.
type servers struct {
	certificate *certificate.Source // of a secure metrics server
	guard       func(http.Handler) http.Handler

	mu               sync.Mutex
	started, stopped bool
	running          []*http.Server
	serving          sync.WaitGroup
	// The addresses that are served.
	health, scraping, debugging net.Addr
}

// prepareServers finds out at once what a secure server lacks.
func (m *Manager) prepareServers(c client.Client) (err error) {
	m.servers.guard = func(next http.Handler) http.Handler { return guard.New(c, next, m.opts.Log) }
	if m.opts.Metrics.Address == "" || !m.opts.Metrics.Secure {
		return nil
	}
	m.servers.certificate, err = certificate.Open(m.opts.Metrics.TLS, certificate.Options{
		Server: "metrics", Advice: "check Options.Metrics.TLS (--metrics-cert-path), or leave it empty for a self-signed one",
		Read: m.metrics.CertificateRead, Log: m.opts.Log,
	})
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	return nil
}

// start listens on every configured address and serves. When one address
// cannot be had, none is served. What is open-ended ends with ctx. A second start is
// ErrStarted, and one after stop ErrStopping.
func (s *servers) start(ctx context.Context, m *Manager) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return ErrStopping
	case s.started:
		return ErrStarted
	}
	s.started = true
	o := &m.opts
	for _, server := range []struct {
		what, address string
		at            *net.Addr
		make          func() *http.Server
	}{
		{"health", o.HealthAddress, &s.health, func() *http.Server { return newServer(m.healthHandler(), o.Log) }},
		{"metrics", o.Metrics.Address, &s.scraping, func() *http.Server { return s.metricsServer(m) }},
		{"debug", o.DebugAddress, &s.debugging, func() *http.Server { return newServer(debug.Handler(ctx, m.records, m.Queued), o.Log) }},
	} {
		if server.address == "" {
			continue
		}
		at, err := s.serve(server.what, server.address, o.MaxConnections, server.make())
		if err != nil {
			s.shutdown()
			return err
		}
		*server.at = at
		o.Log.Info("Serving", "server", server.what, "address", at.String())
	}
	return nil
}

// Guard returns a handler that passes on the requests of who the API server says may get
// the path, by their bearer token, as a secure /metrics does; see [Metrics.Secure].
func (m *Manager) Guard(next http.Handler) http.Handler { return m.servers.guard(next) }

func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    64 << 10,                                          // a token has at most 32 KiB
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // failed handshakes and their like
	}
}

func (m *Manager) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", m.healthz)
	mux.Handle("/healthz/", m.healthz)
	mux.Handle("/readyz", m.readyz)
	mux.Handle("/readyz/", m.readyz)
	return mux
}

func (s *servers) metricsServer(m *Manager) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.metrics.Registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: maxScrapes,
	}))
	for path, handler := range m.opts.Metrics.Handlers {
		mux.Handle(path, handler)
	}
	var handler http.Handler = mux
	if m.opts.Metrics.Secure {
		handler = s.guard(mux)
	}
	server := newServer(handler, m.opts.Log)
	server.WriteTimeout = scrapeTimeout
	if s.certificate == nil {
		return server
	}
	server.TLSConfig = m.opts.Metrics.TLS.Config(s.certificate.Get)
	server.Protocols = m.opts.Metrics.TLS.Protocols()
	return server
}

// serve listens on an address and serves there, so many connections at once. The caller holds mu.
func (s *servers) serve(what, address string, most int, server *http.Server) (net.Addr, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("manager: %s server: %w; choose another address, or \":0\" for any free port", what, err)
	}
	listener = connections.Bound(listener, most)
	s.running = append(s.running, server)
	s.serving.Go(func() {
		// Serve ends when shutdown closes the server. A listener that breaks before
		// shows in the probes, which then fail.
		if server.TLSConfig != nil {
			_ = server.ServeTLS(listener, "", "")
			return
		}
		_ = server.Serve(listener)
	})
	return listener.Addr(), nil
}

// stop ends the servers, and returns when they have ended. Stopping twice is no error.
func (s *servers) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.shutdown()
}

// shutdown lets requests in flight end, for a second, and waits for the servers. The
// caller holds mu.
func (s *servers) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, server := range s.running {
		if err := server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
			_ = server.Close()
		}
	}
	s.running = nil
	s.serving.Wait()
}
