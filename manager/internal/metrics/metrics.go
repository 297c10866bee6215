// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics collects the metrics that a manager serves: of its requests, its
// caches, its controllers and their queues, of the lease, and of the conditions of
// what is reconciled. docs/metrics.md lists them.
package metrics

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
)

// Metrics are the Prometheus metrics of one manager, under the names that
// dashboards and alerts written for controller-runtime and client-go ask for.
type Metrics struct {
	// Registry holds them all; operators add their own.
	Registry *prometheus.Registry

	requests     *prometheus.CounterVec
	resolved     *prometheus.HistogramVec
	requestTime  *prometheus.HistogramVec
	limited      *prometheus.HistogramVec
	requestSize  *prometheus.HistogramVec
	responseSize *prometheus.HistogramVec
	retries      *prometheus.CounterVec

	queued     *prometheus.GaugeVec
	revision   *prometheus.GaugeVec
	processing *prometheus.HistogramVec
	undeclared *prometheus.CounterVec
	consistent *prometheus.HistogramVec

	leading *prometheus.GaugeVec
	// SlowPath counts the renewals of a lease, by its name, that had to read it.
	SlowPath                *prometheus.CounterVec
	certReads, certFailures prometheus.Counter
	webhooks                *webhooks
	controllers             *controllerMetrics
	conditions              *conditions
}

// requestBuckets are those of Kubernetes components, in seconds.
func requestBuckets() []float64 {
	return []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}
}

func sizeBuckets() []float64 {
	return []float64{256, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}
}

// New makes the metrics of one manager, in a registry of their own.
func New() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	kind := []string{"name", "group", "version", "resource"}
	m := &Metrics{
		Registry: prometheus.NewRegistry(),

		requests:     counter("rest_client_requests_total", "Requests to the API server.", "code", "method", "host"),
		resolved:     histogram("rest_client_dns_resolution_duration_seconds", "Time to resolve the name of the server, once per connection.", requestBuckets(), "host"),
		requestTime:  histogram("rest_client_request_duration_seconds", "Time until the answer's header.", requestBuckets(), "verb", "host"),
		limited:      histogram("rest_client_rate_limiter_duration_seconds", "Time spent in the client-side rate limiter.", requestBuckets(), "verb", "host"),
		requestSize:  histogram("rest_client_request_size_bytes", "Bytes of request bodies.", sizeBuckets(), "verb", "host"),
		responseSize: histogram("rest_client_response_size_bytes", "Bytes of answers.", sizeBuckets(), "verb", "host"),
		retries:      counter("rest_client_request_retries_total", "Requests sent again.", "code", "verb", "host"),

		queued:     gauge("informer_queued_items", "Changes decoded but not yet in the store.", kind...),
		revision:   gauge("informer_store_resource_version", "Newest revision in the store, its 15 low digits.", kind...),
		processing: histogram("informer_processing_latency_seconds", "Time to store changes and call the handlers.", prometheus.ExponentialBuckets(1e-6, 10, 8), kind...),
		undeclared: counter("steer_cache_undeclared_reads_total", "Live reads of kinds that no controller declared.", "group", "version", "resource"),

		consistent: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_runtime_client_consistency_wait_duration_seconds", Help: "Time of cached reads that asked the server for the sake of own writes.",
			Buckets:                     []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 6, 8, 10},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"operation", "result"}),

		leading:  gauge("leader_election_master_status", "1 while this process leads, 0 while it waits.", "name"),
		SlowPath: counter("leader_election_slowpath_total", "Renewals that had to read the lease because it was not as this process left it.", "name"),

		certReads:    prometheus.NewCounter(prometheus.CounterOpts{Name: "certwatcher_read_certificate_total", Help: "Reads of certificate files."}),
		certFailures: prometheus.NewCounter(prometheus.CounterOpts{Name: "certwatcher_read_certificate_errors_total", Help: "Reads of certificate files that failed."}),
	}
	m.Registry.MustRegister(
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.requests, m.resolved, m.requestTime, m.limited, m.requestSize, m.responseSize, m.retries,
		m.queued, m.revision, m.processing, m.undeclared, m.consistent,
		m.leading, m.SlowPath, m.certReads, m.certFailures,
	)
	m.conditions = newConditions(m.Registry)
	m.webhooks = newWebhooks(m.Registry)
	m.controllers = newControllerMetrics(m.Registry)
	return m
}

// Leads says whether this process has the lease.
func (m *Metrics) Leads(lease string, leads bool) {
	value := 0.0
	if leads {
		value = 1
	}
	m.leading.WithLabelValues(lease).Set(value)
}

// Attempt is the client's hook for round trips.
func (m *Metrics) Attempt(a wire.Attempt) {
	m.requests.WithLabelValues(a.Code, a.Method, a.Host).Inc()
	m.requestTime.WithLabelValues(a.Verb, a.Host).Observe(a.Took.Seconds())
	m.requestSize.WithLabelValues(a.Verb, a.Host).Observe(float64(a.RequestBytes))
	if a.Waited > 0 {
		m.limited.WithLabelValues(a.Verb, a.Host).Observe(a.Waited.Seconds())
	}
	if a.ResponseBytes >= 0 {
		m.responseSize.WithLabelValues(a.Verb, a.Host).Observe(float64(a.ResponseBytes))
	}
	if a.Retry > 0 {
		m.retries.WithLabelValues(a.Code, a.Verb, a.Host).Inc()
	}
}

var _ cache.Metrics = (*Metrics)(nil)

// informerName is the resource, and what distinguishes the informer from others of it.
func informerName(k cache.MetricKind) string {
	if k.Informer == "" {
		return k.Resource
	}
	return k.Resource + "-" + k.Informer
}

// QueuedItems implements cache.Metrics.
func (m *Metrics) QueuedItems(k cache.MetricKind, n int) {
	m.queued.WithLabelValues(informerName(k), k.Group, k.Version, k.Resource).Set(float64(n))
}

// StoreResourceVersion implements cache.Metrics.
func (m *Metrics) StoreResourceVersion(k cache.MetricKind, revision uint64) {
	const digits = 1e15 // a float64 holds 15 digits exactly
	m.revision.WithLabelValues(informerName(k), k.Group, k.Version, k.Resource).Set(float64(revision % uint64(digits)))
}

// Processed implements cache.Metrics.
func (m *Metrics) Processed(k cache.MetricKind, _ int, took time.Duration) {
	m.processing.WithLabelValues(informerName(k), k.Group, k.Version, k.Resource).Observe(took.Seconds())
}

// UndeclaredRead implements cache.Metrics.
func (m *Metrics) UndeclaredRead(k cache.MetricKind) {
	m.undeclared.WithLabelValues(k.Group, k.Version, k.Resource).Inc()
}

// ConsistentRead implements cache.Metrics.
func (m *Metrics) ConsistentRead(verb client.Verb, took time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	m.consistent.WithLabelValues(string(verb), result).Observe(took.Seconds())
}

// HTTPClient makes the client that all parts of a manager send with. It tells
// how long names take to resolve, unless the config brings its own transport.
func (m *Metrics) HTTPClient(cfg *rest.Config) (*http.Client, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if cfg.Transport == nil {
		dial := cfg.Dial
		if dial == nil {
			dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
		}
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			var begun time.Time
			return dial(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
				DNSStart: func(httptrace.DNSStartInfo) { begun = time.Now() },
				DNSDone: func(httptrace.DNSDoneInfo) {
					m.resolved.WithLabelValues(address).Observe(time.Since(begun).Seconds())
				},
			}), network, address)
		}
	}
	return rest.HTTPClientFor(cfg)
}
