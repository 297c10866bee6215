// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the checks of policies of one kind, under the names of kube-apiserver.
type metrics struct {
	checks  *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// newMetrics returns the metrics of a kind: "validating" or "mutating".
func newMetrics(kind string, labels ...string) metrics {
	labels = append([]string{"policy", "policy_binding", "error_type"}, labels...)
	return metrics{
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_" + kind + "_admission_policy_check_total", Help: "Checks of expressions of policies, by policy, binding and error.",
		}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_" + kind + "_admission_policy_check_duration_seconds", Help: "Time of the evaluation of one expression in seconds, by policy, binding and error.",
			Buckets: []float64{0.0000005, 0.001, 0.01, 0.1, 1},
		}, labels),
	}
}

func (m *metrics) observe(elapsed time.Duration, labels ...string) {
	m.checks.WithLabelValues(labels...).Inc()
	m.seconds.WithLabelValues(labels...).Observe(elapsed.Seconds())
}

// errorType is the label error_type of a message. As in kube-apiserver, a refusal without
// an error is one, too.
func errorType(message string) string {
	switch {
	case strings.HasPrefix(message, "compilation"):
		return "compile_error"
	case strings.HasPrefix(message, "validation failed due to running out of cost budget"):
		return "out_of_budget"
	}
	return "invalid_error"
}
