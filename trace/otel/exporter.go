// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	oteltrace "go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/steer-dev/steer/trace"
)

// scope is the instrumentation scope of spans and metrics.
const scope = "github.com/steer-dev/steer/trace/otel"

// Options of [New].
type Options struct {
	// TracerProvider takes a span for every reconcile. Default: no spans.
	TracerProvider oteltrace.TracerProvider
	// MeterProvider takes the metrics. Default: no metrics.
	MeterProvider metric.MeterProvider
}

// ErrStarted is a second Start of an [Exporter], which would export everything twice.
var ErrStarted = errors.New("otel: the exporter has been started before, and is started once: make another one")

// Exporter feeds OpenTelemetry from a flight recorder. It is a runnable of a
// manager and runs in every process, leading or not.
type Exporter struct {
	recorder *trace.Recorder
	tracer   oteltrace.Tracer
	started  atomic.Bool

	took, waited     metric.Float64Histogram
	accesses, missed metric.Int64Counter
}

// New returns an exporter of the recorder of a manager.
func New(recorder *trace.Recorder, o Options) (*Exporter, error) {
	if o.TracerProvider == nil {
		o.TracerProvider = nooptrace.NewTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = noop.NewMeterProvider()
	}
	e := &Exporter{recorder: recorder, tracer: o.TracerProvider.Tracer(scope)}
	meter := o.MeterProvider.Meter(scope)
	var failed [4]error
	e.took, failed[0] = meter.Float64Histogram("steer.reconcile.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that a reconcile ran, by controller and outcome."))
	e.waited, failed[1] = meter.Float64Histogram("steer.reconcile.wait", metric.WithUnit("s"),
		metric.WithDescription("Time that a request was ready before a worker took it, by controller."))
	e.accesses, failed[2] = meter.Int64Counter("steer.reconcile.accesses", metric.WithUnit("{access}"),
		metric.WithDescription("Reads and writes of reconciles, by controller, verb, kind, and whether the cache answered."))
	e.missed, failed[3] = meter.Int64Counter("steer.records.missed", metric.WithUnit("{record}"),
		metric.WithDescription("Reconciles that were overwritten in the recorder before they were exported."))
	return e, errors.Join(failed[:]...)
}

// Start exports the reconciles that end from now on, until ctx ends. What was
// recorded by then is exported first. A second Start is [ErrStarted].
func (e *Exporter) Start(ctx context.Context) error {
	if e.started.Swap(true) {
		return ErrStarted
	}
	for r := range e.recorder.Follow(ctx) {
		e.export(r)
	}
	return nil
}

// NeedLeaderElection makes the exporter run in every process.
func (e *Exporter) NeedLeaderElection() bool { return false }

// export does not pass on a context: records are of reconciles that have ended.
func (e *Exporter) export(r trace.Record) {
	ctx := context.Background()
	controller := attribute.String("steer.controller", r.Controller)
	outcome := attribute.String("steer.outcome", r.Outcome.String())
	e.took.Record(ctx, r.Took.Seconds(), metric.WithAttributes(controller, outcome))
	e.waited.Record(ctx, r.Waited.Seconds(), metric.WithAttributes(controller))
	if r.Missed > 0 {
		e.missed.Add(ctx, int64(r.Missed))
	}
	for _, list := range [][]trace.Access{r.Reads, r.Writes} {
		for _, a := range list {
			e.accesses.Add(ctx, 1, metric.WithAttributes(controller, attribute.String("steer.verb", a.Verb.String()),
				attribute.String("k8s.kind", a.Kind), attribute.Bool("steer.cached", a.Cached)))
		}
	}
	_, span := e.tracer.Start(ctx, "reconcile "+r.Controller, oteltrace.WithNewRoot(), oteltrace.WithTimestamp(r.Began),
		oteltrace.WithSpanKind(oteltrace.SpanKindConsumer), oteltrace.WithAttributes(controller, outcome))
	defer span.End(oteltrace.WithTimestamp(r.Began.Add(r.Took)))
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attributes(r)...)
	if r.Error != "" {
		span.SetStatus(codes.Error, r.Error)
	}
}

// attributes are those of a span beside controller and outcome.
func attributes(r trace.Record) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("steer.reconcile.id", r.ID.String()),
		attribute.Float64("steer.waited", r.Waited.Seconds()),
		attribute.Int("steer.retries", r.Retries),
		attribute.StringSlice("steer.causes", texts(r.Causes)),
		attribute.StringSlice("steer.reads", texts(r.Reads)),
		attribute.StringSlice("steer.writes", texts(r.Writes)),
	}
	if r.Request != "" {
		out = append(out, attribute.String("steer.request", r.Request))
	} else {
		out = append(out, attribute.String("k8s.kind", r.Kind), attribute.String("k8s.namespace.name", r.Namespace),
			attribute.String("k8s.object.name", r.Name))
	}
	if r.After > 0 {
		out = append(out, attribute.Float64("steer.after", r.After.Round(time.Millisecond).Seconds()))
	}
	return out
}

func texts[T interface{ String() string }](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}
