// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// conversionFailure is why a conversion failed, as metrics name it; empty: it has not.
type conversionFailure string

const (
	callFailure       conversionFailure = "conversion_webhook_call_failure"
	malformedResponse conversionFailure = "conversion_webhook_malformed_response_failure"
	partialResponse   conversionFailure = "conversion_webhook_partial_response_failure"
	invalidObject     conversionFailure = "conversion_webhook_invalid_converted_object_failure"
)

// conversionMetrics are the metrics of conversion webhooks, under the names of kube-apiserver.
type conversionMetrics struct {
	// byDefinition measures by definition and versions; requests and durations by result.
	byDefinition *prometheus.HistogramVec
	requests     *prometheus.CounterVec
	durations    *prometheus.HistogramVec
}

func newConversionMetrics() *conversionMetrics {
	return &conversionMetrics{
		byDefinition: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_crd_conversion_webhook_duration_seconds", Help: "CRD webhook conversion duration in seconds",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"crd_name", "from_version", "to_version", "succeeded"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_conversion_webhook_request_total",
			Help: "Counter for conversion webhook requests with success/failure and failure error type",
		}, []string{"result", "failure_type"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_conversion_webhook_duration_seconds", Help: "Conversion webhook request latency",
			Buckets: []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60},
		}, []string{"result", "failure_type"}),
	}
}

// collectors are what a registry has to register.
func (m *conversionMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.byDefinition, m.requests, m.durations}
}

// observe counts one review.
func (m *conversionMetrics) observe(crd, from, to string, failure conversionFailure, err error, took time.Duration) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.byDefinition.WithLabelValues(crd, from, to, strconv.FormatBool(err == nil)).Observe(took.Seconds())
	m.requests.WithLabelValues(result, string(failure)).Inc()
	m.durations.WithLabelValues(result, string(failure)).Observe(took.Seconds())
}
