// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/controlplane/component"
)

// metrics of the calls, under the names of kube-apiserver. Both plugins share them.
type metrics struct {
	seconds                        *prometheus.HistogramVec
	requests, rejections, failOpen *prometheus.CounterVec
}

func newMetrics(d component.Deps) *metrics {
	m := &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_admission_webhook_admission_duration_seconds",
			Help:    "Latency of admission webhooks in seconds, by name, type (admit or validating), operation and whether the request was rejected.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25},
		}, []string{"name", "type", "operation", "rejected"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_webhook_request_total",
			Help: "Calls of admission webhooks, by name, type (admit or validating), operation, HTTP status code (600 for larger ones) and whether the request was rejected.",
		}, []string{"name", "type", "operation", "code", "rejected"}),
		rejections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_webhook_rejection_count",
			Help: "Requests that admission webhooks rejected, by name, type (admit or validating), operation, kind of error (no_error for a rejection by the webhook) and HTTP status code.",
		}, []string{"name", "type", "operation", "error_type", "rejection_code"}),
		failOpen: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_webhook_fail_open_count",
			Help: "Failed calls of admission webhooks that the failure policy Ignore passed over, by name and type (admit or validating).",
		}, []string{"name", "type"}),
	}
	d.Measure(m.seconds, m.requests, m.rejections, m.failOpen)
	return m
}

// maxCode bounds the values of a label.
const maxCode = 600

// observe counts one call of a hook and its outcome.
func (m *metrics) observe(h *hook, step, operation string, took time.Duration, err error) {
	rejected, code, kind := err != nil, http.StatusOK, "apiserver_internal_error"
	var call *callError
	var refusal *refusalError
	switch {
	case err == nil:
	case errors.As(err, &call):
		rejected, code, kind = !h.ignore, call.code, "calling_webhook_error"
	case errors.As(err, &refusal):
		code, kind = int(refusal.status.ErrStatus.Code), "no_error"
	default:
		code = 0
	}
	code = min(code, maxCode)
	m.requests.WithLabelValues(h.name, step, operation, strconv.Itoa(code), strconv.FormatBool(rejected)).Inc()
	m.seconds.WithLabelValues(h.name, step, operation, strconv.FormatBool(rejected)).Observe(took.Seconds())
	if rejected && !(call != nil && errors.Is(call.reason, context.Canceled)) {
		m.rejections.WithLabelValues(h.name, step, operation, kind, strconv.Itoa(code)).Inc()
	}
}

// codeOf is the status code of a failed call: that of the answer if it is a Status, else
// the one that kube-apiserver counts.
func codeOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return http.StatusServiceUnavailable
}
