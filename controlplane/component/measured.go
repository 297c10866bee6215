// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/apiserver/resource"
)

// passTimes measures admission under the names of kube-apiserver: the passes of each
// plugin, and those of the chain.
type passTimes struct {
	plugins, chain *prometheus.HistogramVec
	summary        *prometheus.SummaryVec
}

// passLabels are those of the chain; a plugin has its name before them.
func passLabels() []string { return []string{"type", "operation", "rejected"} }

func newPassTimes() *passTimes {
	buckets := []float64{0.005, 0.025, 0.1, 0.5, 1.0, 2.5}
	return &passTimes{
		plugins: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_admission_controller_admission_duration_seconds",
			Help:    "Time of an admission plugin in seconds, by name, operation, type (validate or admit) and whether the request was rejected. A plugin is measured for the resources that it handles.",
			Buckets: buckets,
		}, append([]string{"name"}, passLabels()...)),
		chain: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_admission_step_admission_duration_seconds",
			Help:    "Time of all admission plugins together in seconds, by operation, type (validate or admit) and whether the request was rejected.",
			Buckets: buckets,
		}, passLabels()),
		summary: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name:       "apiserver_admission_step_admission_duration_seconds_summary",
			Help:       "Time of all admission plugins together in seconds, as quantiles of the last 5 hours, by operation, type (validate or admit) and whether the request was rejected.",
			Objectives: map[float64]float64{0.5: 0.05, 0.9: 0.01, 0.99: 0.001},
			MaxAge:     5 * time.Hour,
		}, passLabels()),
	}
}

// plugin measures one plugin.
func (p *passTimes) plugin(name string, a resource.Admission) resource.Admission {
	series := series{find: func(labels ...string) prometheus.Observer {
		return p.plugins.WithLabelValues(append([]string{name}, labels...)...)
	}}
	return resource.Observe(a, series.observe)
}

// all measures the chain.
func (p *passTimes) all(a resource.Admission) resource.Admission {
	histogram := series{find: func(labels ...string) prometheus.Observer { return p.chain.WithLabelValues(labels...) }}
	summary := series{find: func(labels ...string) prometheus.Observer { return p.summary.WithLabelValues(labels...) }}
	return resource.Observe(a, func(pass resource.Pass, r *resource.AdmissionRequest, took time.Duration, err error) {
		histogram.observe(pass, r, took, err)
		summary.observe(pass, r, took, err)
	})
}

// series are the observers of a plugin, or of the chain, by type, operation and outcome.
// Those of requests that go on are remembered.
type series struct {
	find  func(labels ...string) prometheus.Observer
	known [2][4]atomic.Pointer[prometheus.Observer]
}

func (s *series) observe(pass resource.Pass, r *resource.AdmissionRequest, took time.Duration, err error) {
	step := "admit"
	if pass == resource.ValidatingPass {
		step = "validate"
	}
	var known *atomic.Pointer[prometheus.Observer]
	for i, operation := range [...]resource.Operation{resource.Create, resource.Update, resource.Delete, resource.Connect} {
		if r.Operation == operation && err == nil {
			known = &s.known[pass][i]
		}
	}
	if known != nil {
		if observer := known.Load(); observer != nil {
			(*observer).Observe(took.Seconds())
			return
		}
	}
	observer := s.find(step, string(r.Operation), strconv.FormatBool(err != nil))
	observer.Observe(took.Seconds())
	if known != nil {
		known.Store(&observer)
	}
}
