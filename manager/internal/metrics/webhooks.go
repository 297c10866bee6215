// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/webhook"
)

// webhooks are the metrics of admission and conversion.
type webhooks struct {
	latency          *prometheus.HistogramVec
	requests         *prometheus.CounterVec
	inFlight         *prometheus.GaugeVec
	panics           prometheus.Counter
	conversionPanics prometheus.Counter
}

func newWebhooks(registry *prometheus.Registry) *webhooks {
	w := &webhooks{
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_runtime_webhook_latency_seconds", Help: "Time to answer a request of an API server.",
			Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12), NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"webhook"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_requests_total", Help: "Requests of API servers, by the HTTP status of the answer.",
		}, []string{"webhook", "code"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "controller_runtime_webhook_requests_in_flight", Help: "Requests of API servers that are being answered.",
		}, []string{"webhook"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_panics_total", Help: "Panics of admission webhooks.",
		}),
		conversionPanics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controller_runtime_conversion_webhook_panics_total", Help: "Panics of conversions.",
		}),
	}
	registry.MustRegister(w.latency, w.requests, w.inFlight, w.panics, w.conversionPanics)
	return w
}

var _ webhook.Metrics = (*Metrics)(nil)

// WebhookAdded implements webhook.Metrics.
func (m *Metrics) WebhookAdded(path string) {
	m.webhooks.requests.WithLabelValues(path, strconv.Itoa(http.StatusOK))
	m.webhooks.requests.WithLabelValues(path, strconv.Itoa(http.StatusInternalServerError))
	m.webhooks.inFlight.WithLabelValues(path)
}

// WebhookBegan implements webhook.Metrics.
func (m *Metrics) WebhookBegan(path string) { m.webhooks.inFlight.WithLabelValues(path).Inc() }

// WebhookEnded implements webhook.Metrics.
func (m *Metrics) WebhookEnded(path string, status int, took time.Duration) {
	m.webhooks.inFlight.WithLabelValues(path).Dec()
	m.webhooks.requests.WithLabelValues(path, strconv.Itoa(status)).Inc()
	m.webhooks.latency.WithLabelValues(path).Observe(took.Seconds())
}

// WebhookPanicked implements webhook.Metrics.
func (m *Metrics) WebhookPanicked(conversion bool) {
	if conversion {
		m.webhooks.conversionPanics.Inc()
		return
	}
	m.webhooks.panics.Inc()
}

// CertificateRead implements webhook.Metrics.
func (m *Metrics) CertificateRead(err error) {
	m.certReads.Inc()
	if err != nil {
		m.certFailures.Inc()
	}
}
