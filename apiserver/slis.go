// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// slis counts the results of health checks, for /metrics/slis. It is safe for
// concurrent use; the zero value has counted nothing.
type slis struct {
	mu      sync.Mutex
	results map[checked]*results
}

// checked is a check at a health path.
type checked struct{ kind, name string }

// results of a check.
type results struct {
	succeeded, failed uint64
	healthy           bool // at the last run
}

// observe counts a result.
func (s *slis) observe(kind, name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.results == nil {
		s.results = map[checked]*results{}
	}
	r := s.results[checked{kind, name}]
	if r == nil {
		r = &results{}
		s.results[checked{kind, name}] = r
	}
	if r.healthy = err == nil; r.healthy {
		r.succeeded++
	} else {
		r.failed++
	}
}

// handler answers /metrics/slis.
func (s *slis) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func (*slis) descriptions() (state, total *prometheus.Desc) {
	return prometheus.NewDesc("kubernetes_healthcheck", "Last result of a health check, by name and type of health path: 1 for healthy.", []string{"name", "type"}, nil),
		prometheus.NewDesc("kubernetes_healthchecks_total", "Results of health checks by status.", []string{"name", "status", "type"}, nil)
}

// Describe implements prometheus.Collector.
func (s *slis) Describe(ch chan<- *prometheus.Desc) {
	state, total := s.descriptions()
	ch <- state
	ch <- total
}

// Collect implements prometheus.Collector.
func (s *slis) Collect(ch chan<- prometheus.Metric) {
	state, total := s.descriptions()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, r := range s.results {
		healthy := 0.0
		if r.healthy {
			healthy = 1
		}
		ch <- prometheus.MustNewConstMetric(state, prometheus.GaugeValue, healthy, c.name, c.kind)
		if r.succeeded > 0 {
			ch <- prometheus.MustNewConstMetric(total, prometheus.CounterValue, float64(r.succeeded), c.name, "success", c.kind)
		}
		if r.failed > 0 {
			ch <- prometheus.MustNewConstMetric(total, prometheus.CounterValue, float64(r.failed), c.name, "error", c.kind)
		}
	}
}
