// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/watchserver"
	"github.com/steer-dev/steer/apiserver/resource"
)

// metrics are the server's metrics, under the names of kube-apiserver.
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

// handler answers /metrics. The collectors of Go and of the process are registered on
// the first request, unless the registry has them.
func (m *metrics) handler() http.Handler {
	shown := sync.OnceValue(func() http.Handler {
		for _, c := range []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
			_ = m.registry.Register(c) // fails if the owner of the registry has registered it
		}
		return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { shown().ServeHTTP(w, r) })
}

// metricVerb returns a verb as metrics have it. Unknown verbs share one value, so that
// the number of series is bounded.
func metricVerb(verb string) string {
	switch verb {
	case "create":
		return "POST"
	case "update":
		return "PUT"
	case "get", "list", "watch", "patch", "delete", "deletecollection", "head", "post", "put", "options", "connect", "trace":
		return strings.ToUpper(verb)
	}
	return "other"
}

func scopeOf(req *endpoint.Request) string {
	switch {
	case !req.Info.Resource:
		return ""
	case req.Info.Name != "":
		return "resource"
	case req.Namespace != "":
		return "namespace"
	}
	return "cluster"
}

// series identifies the requests that are counted together; all but the code is known
// when they arrive.
type series struct {
	version     *resource.Version
	sub         *resource.Subresource
	verb, scope string
	dryRun      bool
	long        bool // without a duration
	code        int
}

func seriesOf(req *endpoint.Request, code int) series {
	return series{
		version: req.Version, sub: req.Sub, verb: req.Verb, scope: scopeOf(req),
		dryRun: req.ReadParameter("dryRun") != "", long: req.LongRunning(), code: code,
	}
}

// counters of one series; durations is nil for long-running requests.
type counters struct {
	requests  prometheus.Counter
	durations prometheus.Observer
}

func (c counters) observe(took time.Duration) {
	c.requests.Inc()
	if c.durations != nil {
		c.durations.Observe(took.Seconds())
	}
}

// observed caches the counters of a resource while it is served, so that requests do
// not look them up by labels. It is safe for concurrent use.
type observed struct {
	mu    sync.Mutex // serialises additions
	known atomic.Pointer[[]observedSeries]
}

type observedSeries struct {
	series
	counters
}

// of returns the counters of a series, created by look if it is new. A resource has few
// series; a linear search is faster than a map.
func (o *observed) of(s series, look func(series) counters) counters {
	if c, ok := o.find(s); ok {
		return c
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, ok := o.find(s); ok {
		return c
	}
	c := look(s)
	var all []observedSeries
	if known := o.known.Load(); known != nil {
		all = slices.Clone(*known)
	}
	all = append(all, observedSeries{s, c})
	o.known.Store(&all)
	return c
}

func (o *observed) find(want series) (counters, bool) {
	if known := o.known.Load(); known != nil {
		for i := range *known {
			if s := &(*known)[i]; s.series == want {
				return s.counters, true
			}
		}
	}
	return counters{}, false
}

// observe counts a finished request; in is the resource that served it, or nil. Paths
// that are not served share one series, so that the number of series is bounded.
func (m *metrics) observe(req *endpoint.Request, in *installed, code int, took time.Duration) {
	s := seriesOf(req, code)
	if in == nil {
		m.counters(nil, s).observe(took)
		return
	}
	in.observed.of(s, func(s series) counters { return m.counters(in.Resource, s) }).observe(took)
}

// counters looks up the counters of a series of a resource, nil for none.
func (m *metrics) counters(r *resource.Resource, s series) counters {
	group, version, plural, subresource, dryRun := "", "", "", "", ""
	if r != nil {
		group, version, plural = r.Group, s.version.Name, r.Plural
	}
	if s.sub != nil {
		subresource = s.sub.Name
	}
	if s.dryRun {
		dryRun = "All"
	}
	verb := metricVerb(s.verb)
	c := counters{requests: m.requests.WithLabelValues(verb, dryRun, group, version, plural, subresource, s.scope, "apiserver", strconv.Itoa(s.code))}
	if !s.long {
		c.durations = m.durations.WithLabelValues(verb, group, version, plural, subresource, s.scope, "apiserver")
	}
	return c
}

// watch returns the metrics of one watch.
func (m *metrics) watch(r *resource.Request) watchserver.Metrics {
	group, version, plural := r.Resource.Group, r.Version.Name, r.Resource.Plural
	return watchserver.Metrics{Events: m.events.WithLabelValues(group, version, plural), Sizes: m.sizes.WithLabelValues(group, version, plural)}
}

// liveMetrics computes metrics from the server's state when they are collected.
type liveMetrics struct{ s *Server }

// Describe implements prometheus.Collector.
func (l *liveMetrics) Describe(ch chan<- *prometheus.Desc) {
	inflight, long, objects := l.descriptions()
	ch <- inflight
	ch <- long
	ch <- objects
}

func (l *liveMetrics) descriptions() (inflight, long, objects *prometheus.Desc) {
	return prometheus.NewDesc("apiserver_current_inflight_requests", "Requests in flight, watches and connections excluded.", []string{"request_kind"}, nil),
		prometheus.NewDesc("apiserver_longrunning_requests", "Watches and connections in flight.", nil, nil),
		prometheus.NewDesc("apiserver_resource_objects", "Stored objects by resource.", []string{"group", "resource"}, nil)
}

// Collect implements prometheus.Collector.
func (l *liveMetrics) Collect(ch chan<- prometheus.Metric) {
	inflight, long, objects := l.descriptions()
	reads, writes, running := l.s.inFlight.Counts()
	ch <- prometheus.MustNewConstMetric(inflight, prometheus.GaugeValue, float64(reads), "readOnly")
	ch <- prometheus.MustNewConstMetric(inflight, prometheus.GaugeValue, float64(writes), "mutating")
	ch <- prometheus.MustNewConstMetric(long, prometheus.GaugeValue, float64(running))
	view := l.s.store.Latest()
	for _, r := range l.s.Resources() {
		if r.Backend == nil && r.Storage.Alias == nil {
			ch <- prometheus.MustNewConstMetric(objects, prometheus.GaugeValue, float64(view.Count(r.Storage.Bucket, "", "")), r.Group, r.Plural)
		}
	}
}
