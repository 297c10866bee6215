// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/storage"
)

// metrics say which services are unavailable, under the names of kube-aggregator.
type metrics struct {
	store       storage.Store
	unavailable *prometheus.Desc
	lost        *prometheus.CounterVec
}

func newMetrics(store storage.Store) *metrics {
	return &metrics{
		store: store,
		unavailable: prometheus.NewDesc("aggregator_unavailable_apiservice",
			"Whether an APIService is unavailable: 1, or 0 if it is available, by name.", []string{"name"}, nil),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggregator_unavailable_apiservice_total",
			Help: "APIServices that have become unavailable, by name and reason.",
		}, []string{"name", "reason"}),
	}
}

// Describe implements [prometheus.Collector].
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.unavailable
	m.lost.Describe(to)
}

// Collect implements [prometheus.Collector]: what is stored now.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	view := m.store.Latest()
	for rec := range view.Ascend(Bucket, "", "") {
		value := 0.0
		if !settled(rec) { // most are of this server, and are not even decoded
			if s := decode(rec); s == nil || !available(s) {
				value = 1
			}
		}
		to <- prometheus.MustNewConstMetric(m.unavailable, prometheus.GaugeValue, value, rec.Key.Name)
	}
	m.lost.Collect(to)
}

// changed counts a service that has become unavailable.
func (m *metrics) changed(s, old service) {
	if old == nil || s == nil || !available(old) || available(s) {
		return
	}
	reason := "UnknownReason"
	if c := condition(s); c != nil {
		reason = c.Reason
	}
	m.lost.WithLabelValues(s.Name, reason).Inc()
}

func available(s service) bool {
	c := condition(s)
	return c != nil && c.Status == v1.ConditionTrue
}
