// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/trace"
)

// maxPriorities is how many priorities get a series of their own, as in
// controller-runtime; the others share one.
const maxPriorities = 25

// reconcileBuckets are those of controller-runtime, in seconds.
func reconcileBuckets() []float64 {
	return []float64{
		0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
		1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
	}
}

// controllerMetrics are the vectors that all controllers of a manager share.
type controllerMetrics struct {
	results  *prometheus.CounterVec
	errors   *prometheus.CounterVec
	terminal *prometheus.CounterVec
	panics   *prometheus.CounterVec
	timeouts *prometheus.CounterVec
	took     *prometheus.HistogramVec
	waited   *prometheus.HistogramVec
	worked   *prometheus.HistogramVec
}

func newControllerMetrics(registry *prometheus.Registry) *controllerMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	queueBuckets := prometheus.ExponentialBuckets(1e-8, 10, 12)
	m := &controllerMetrics{
		results:  counter("controller_runtime_reconcile_total", "Reconciles by result.", "controller", "result"),
		errors:   counter("controller_runtime_reconcile_errors_total", "Reconciles that failed.", "controller"),
		terminal: counter("controller_runtime_terminal_reconcile_errors_total", "Reconciles that failed for good.", "controller"),
		panics:   counter("controller_runtime_reconcile_panics_total", "Reconciles that panicked.", "controller"),
		timeouts: counter("controller_runtime_reconcile_timeouts_total", "Reconciles that ran into their deadline.", "controller"),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_runtime_reconcile_time_seconds", Help: "Duration of reconciles.",
			Buckets: reconcileBuckets(), NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"controller"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "workqueue_queue_duration_seconds", Help: "How long requests were ready before a worker took them.", Buckets: queueBuckets,
		}, []string{"name", "controller"}),
		worked: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "workqueue_work_duration_seconds", Help: "How long workers took for requests.", Buckets: queueBuckets,
		}, []string{"name", "controller"}),
	}
	registry.MustRegister(m.results, m.errors, m.terminal, m.panics, m.timeouts, m.took, m.waited, m.worked)
	return m
}

// instruments of one controller: the children of the vectors, looked up once.
type instruments struct {
	success, failure, requeue, requeueAfter prometheus.Counter
	errors, terminal, panics, timeouts      prometheus.Counter
	took, waited, worked                    prometheus.Observer
}

// Controller makes the instruments of a controller; all its series exist from
// the start, as zeros. A second controller of a name is refused.
func (m *Metrics) Controller(c controller.ControllerInfo) (controller.Instruments, error) {
	name, v := c.Name(), m.controllers
	if err := m.Registry.Register(newQueueCollector(c)); err != nil {
		return nil, fmt.Errorf("another controller of this manager is named %q; name one of the two: controller.Name(\"...\")", name)
	}
	return &instruments{
		success:      v.results.WithLabelValues(name, "success"),
		failure:      v.results.WithLabelValues(name, "error"),
		requeue:      v.results.WithLabelValues(name, "requeue"),
		requeueAfter: v.results.WithLabelValues(name, "requeue_after"),
		errors:       v.errors.WithLabelValues(name),
		terminal:     v.terminal.WithLabelValues(name),
		panics:       v.panics.WithLabelValues(name),
		timeouts:     v.timeouts.WithLabelValues(name),
		took:         v.took.WithLabelValues(name),
		waited:       v.waited.WithLabelValues(name, name),
		worked:       v.worked.WithLabelValues(name, name),
	}, nil
}

// Waited implements queue.Observer.
func (i *instruments) Waited(d time.Duration) { i.waited.Observe(d.Seconds()) }

// Worked implements queue.Observer.
func (i *instruments) Worked(d time.Duration) { i.worked.Observe(d.Seconds()) }

// Reconciled implements controller.Instruments.
func (i *instruments) Reconciled(outcome trace.Outcome, took time.Duration) {
	i.took.Observe(took.Seconds())
	switch outcome {
	case trace.Done:
		i.success.Inc()
	case trace.Requeued:
		i.requeueAfter.Inc()
	case trace.Again, trace.Conflicted:
		i.requeue.Inc()
	case trace.Stopped:
	default:
		i.failure.Inc()
		i.errors.Inc()
		switch outcome {
		case trace.Terminal:
			i.terminal.Inc()
		case trace.Panicked:
			i.panics.Inc()
		case trace.TimedOut:
			i.timeouts.Inc()
		}
	}
}

// queueCollector reads what a controller's queue counts anyway.
type queueCollector struct {
	controller.ControllerInfo
	depth, adds, retries, unfinished, longest, active, concurrency *prometheus.Desc
}

func newQueueCollector(c controller.ControllerInfo) *queueCollector {
	name := c.Name()
	queue := func(metric, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc(metric, help, variable, prometheus.Labels{"name": name, "controller": name})
	}
	own := func(metric, help string) *prometheus.Desc {
		return prometheus.NewDesc(metric, help, nil, prometheus.Labels{"controller": name})
	}
	return &queueCollector{
		ControllerInfo: c,
		depth:          queue("workqueue_depth", "Requests that wait for a worker.", "priority"),
		adds:           queue("workqueue_adds_total", "Requests added."),
		retries:        queue("workqueue_retries_total", "Requests added with a delay."),
		unfinished:     queue("workqueue_unfinished_work_seconds", "Time that the running requests have taken so far."),
		longest:        queue("workqueue_longest_running_processor_seconds", "Time that the longest running request has taken so far."),
		active:         own("controller_runtime_active_workers", "Workers that run a request."),
		concurrency:    own("controller_runtime_max_concurrent_reconciles", "Workers."),
	}
}

// Describe implements prometheus.Collector.
func (q *queueCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{q.depth, q.adds, q.retries, q.unfinished, q.longest, q.active, q.concurrency} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (q *queueCollector) Collect(to chan<- prometheus.Metric) {
	s := q.Stats()
	emit := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	emit(q.adds, prometheus.CounterValue, float64(s.Adds))
	emit(q.retries, prometheus.CounterValue, float64(s.Retries))
	emit(q.unfinished, prometheus.GaugeValue, s.Unfinished.Seconds())
	emit(q.longest, prometheus.GaugeValue, s.Longest.Seconds())
	emit(q.active, prometheus.GaugeValue, float64(s.Running))
	emit(q.concurrency, prometheus.GaugeValue, float64(q.Concurrency()))
	others := 0
	for i, d := range s.Depth {
		if i >= maxPriorities {
			others += d.Keys
			continue
		}
		emit(q.depth, prometheus.GaugeValue, float64(d.Keys), strconv.Itoa(d.Priority))
	}
	switch {
	case len(s.Depth) == 0:
		emit(q.depth, prometheus.GaugeValue, 0, "0")
	case len(s.Depth) > maxPriorities:
		emit(q.depth, prometheus.GaugeValue, float64(others), "exceeded_cardinality_limit")
	}
}
