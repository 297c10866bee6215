// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of match conditions, under the names of kube-apiserver.
type metrics struct {
	seconds            *prometheus.HistogramVec
	errors, exclusions *prometheus.CounterVec
}

func newMetrics() metrics {
	labels := []string{"name", "kind", "type", "operation"}
	return metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_admission_match_condition_evaluation_seconds",
			Help:    "Time of the evaluation of match conditions in seconds, by name, kind (webhook or policy), type (admit or validating) and operation.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25},
		}, labels),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_match_condition_evaluation_errors_total",
			Help: "Match conditions that could not be evaluated, by name, kind (webhook or policy), type (admit or validating) and operation.",
		}, labels),
		exclusions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_match_condition_exclusions_total",
			Help: "Requests that match conditions excluded, by name, kind (webhook or policy), type (admit or validate) and operation.",
		}, labels),
	}
}

// observe counts one evaluation of conditions as kube-apiserver does: no time if all hold, and
// exclusions of webhooks only, where those that validate have another type.
func (m *metrics) observe(o *ConditionOptions, operation string, took time.Duration, failures int, holds, fails bool) {
	of := []string{o.Name, o.Kind, o.Type, operation}
	if !holds {
		m.seconds.WithLabelValues(of...).Observe(took.Seconds())
	}
	if failures > 0 {
		m.errors.WithLabelValues(of...).Add(float64(failures))
	}
	if !holds && !fails && o.Kind == "webhook" {
		if of[2] == "validating" {
			of[2] = "validate"
		}
		m.exclusions.WithLabelValues(of...).Inc()
	}
}
