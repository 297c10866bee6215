// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// servers are the HTTP servers of a manager: probes and metrics.
type servers struct {
	mu       sync.Mutex
	running  []*http.Server
	serving  sync.WaitGroup
	health   net.Addr
	scraping net.Addr
}

// start listens on every configured address and serves. When one address
// cannot be had, none is served.
func (s *servers) start(m *Manager) error {
	if address := m.opts.HealthAddress; address != "" {
		mux := http.NewServeMux()
		mux.Handle("/healthz", m.healthz)
		mux.Handle("/healthz/", m.healthz)
		mux.Handle("/readyz", m.readyz)
		mux.Handle("/readyz/", m.readyz)
		at, err := s.serve("health", address, mux)
		if err != nil {
			s.stop()
			return err
		}
		s.health = at
	}
	if address := m.opts.Metrics.Address; address != "" {
		mux := http.NewServeMux()
		mux.Handle("/metrics", promhttp.HandlerFor(m.metrics.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
		for path, handler := range m.opts.Metrics.Handlers {
			mux.Handle(path, handler)
		}
		at, err := s.serve("metrics", address, mux)
		if err != nil {
			s.stop()
			return err
		}
		s.scraping = at
	}
	return nil
}

func (s *servers) serve(what, address string, h http.Handler) (net.Addr, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("manager: %s server: %w; choose another address, or \":0\" for any free port", what, err)
	}
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    1 << 20,
	}
	s.mu.Lock()
	s.running = append(s.running, server)
	s.mu.Unlock()
	s.serving.Go(func() {
		// Serve ends when stop closes the server; there is nobody to tell of a
		// listener that breaks before, but the probes themselves.
		_ = server.Serve(listener)
	})
	return listener.Addr(), nil
}

// stop lets requests in flight end, for a second, and waits for the servers.
func (s *servers) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
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
