// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

// metrics are the server's metrics, under the names that dashboards know.
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	events    *prometheus.CounterVec
	sizes     *prometheus.HistogramVec
}

func newMetrics(registry *prometheus.Registry, s *Server) *metrics {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	m := &metrics{
		registry: registry,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Requests by verb, resource and HTTP response code.",
		}, []string{"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds", Help: "Response latency in seconds, watches and connections excluded.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_events_total", Help: "Events sent to watch clients.",
		}, []string{"group", "version", "resource"}),
		sizes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_watch_events_sizes", Help: "Sizes of the objects in watch events, in bytes.",
			Buckets: prometheus.ExponentialBuckets(1024, 2, 8),
		}, []string{"group", "version", "resource"}),
	}
	registry.MustRegister(m.requests, m.durations, m.events, m.sizes, &liveMetrics{s: s})
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// verbs as metrics know them.
func metricVerb(verb string) string {
	switch verb {
	case "create":
		return "POST"
	case "update":
		return "PUT"
	case "":
		return "other"
	}
	upper := []byte(verb)
	for i, c := range upper {
		if 'a' <= c && c <= 'z' {
			upper[i] = c - 'a' + 'A'
		}
	}
	return string(upper)
}

func scopeOf(req *endpoint.Request) string {
	switch {
	case !req.Target.Resource:
		return ""
	case req.Target.Name != "":
		return "resource"
	case req.Namespace != "":
		return "namespace"
	}
	return "cluster"
}

// observe counts a finished request. Paths that nothing serves count as one, so
// that their number is bounded.
func (m *metrics) observe(req *endpoint.Request, w *exchange.Writer, took time.Duration) {
	group, version, plural := "", "", ""
	if req.Served != nil {
		group, version, plural = req.Resource.Group, req.Version.Name, req.Resource.Plural
	}
	subresource := ""
	if req.Sub != nil {
		subresource = req.Sub.Name
	}
	dryRun := ""
	if req.Asked("dryRun") != "" {
		dryRun = "All"
	}
	verb, scope := metricVerb(req.Verb), scopeOf(req)
	m.requests.WithLabelValues(verb, dryRun, group, version, plural, subresource, scope, "apiserver", strconv.Itoa(w.Code)).Inc()
	if !req.LongRunning() {
		m.durations.WithLabelValues(verb, group, version, plural, subresource, scope, "apiserver").Observe(took.Seconds())
	}
}

// watch returns the metrics of one watch.
func (m *metrics) watch(r *resource.Request) endpoint.Watched {
	group, version, plural := r.Resource.Group, r.Version.Name, r.Resource.Plural
	return endpoint.Watched{Events: m.events.WithLabelValues(group, version, plural), Sizes: m.sizes.WithLabelValues(group, version, plural)}
}

// liveMetrics reads what is known anyway when somebody looks.
type liveMetrics struct{ s *Server }

// Describe implements prometheus.Collector.
func (l *liveMetrics) Describe(ch chan<- *prometheus.Desc) {
	inflight, long, objects := l.descriptions()
	ch <- inflight
	ch <- long
	ch <- objects
}

func (l *liveMetrics) descriptions() (inflight, long, objects *prometheus.Desc) {
	return prometheus.NewDesc("apiserver_current_inflight_requests", "Requests under way, watches and connections excluded.", []string{"request_kind"}, nil),
		prometheus.NewDesc("apiserver_longrunning_requests", "Watches and connections under way.", nil, nil),
		prometheus.NewDesc("apiserver_resource_objects", "Stored objects by resource.", []string{"group", "resource"}, nil)
}

// Collect implements prometheus.Collector.
func (l *liveMetrics) Collect(ch chan<- prometheus.Metric) {
	inflight, long, objects := l.descriptions()
	reads, writes, running := l.s.gate.Counts()
	ch <- prometheus.MustNewConstMetric(inflight, prometheus.GaugeValue, float64(reads), "readOnly")
	ch <- prometheus.MustNewConstMetric(inflight, prometheus.GaugeValue, float64(writes), "mutating")
	ch <- prometheus.MustNewConstMetric(long, prometheus.GaugeValue, float64(running))
	view, err := l.s.store.View(context.Background(), 0)
	if err != nil {
		return
	}
	for _, r := range l.s.Resources() {
		if r.Backend == nil && r.Storage.Alias == nil {
			ch <- prometheus.MustNewConstMetric(objects, prometheus.GaugeValue, float64(view.Count(r.Storage.Bucket, "", "")), r.Group, r.Plural)
		}
	}
}
