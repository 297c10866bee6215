// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/trace/otel"
)

// greeter gives every ConfigMap that asks for it a child, and fails for others.
type greeter struct {
	children controller.Children[*corev1.Secret]
}

func (g *greeter) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	if cm.Name == "bad" {
		return controller.Result{}, controller.Terminal(errors.New("no greeting"))
	}
	return controller.Done(), g.children.Apply(ctx, cm, []*corev1.Secret{{
		ObjectMeta: metav1.ObjectMeta{Name: cm.Name}, StringData: map[string]string{"password": "hush"},
	}})
}

func TestReconcilesAreSpansAndMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spans, metrics := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		env := steertest.New(t, steertest.Options{Operator: steer.Operator{
			Scheme: steer.Scheme{corev1.AddToScheme},
			Setup: func(_ context.Context, m *manager.Manager) error {
				exporter, err := otel.New(m.Recorder(), otel.Options{
					TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
					MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(metrics)),
				})
				if err != nil {
					return err
				}
				return errors.Join(m.Add(exporter), controller.Add(m, &greeter{}, controller.Owns[*corev1.Secret]()))
			},
		}})
		for _, name := range []string{"good", "bad"} {
			env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		env.Settled()
		synctest.Wait() // the exporter has read everything

		find := func(name string) sdktrace.ReadOnlySpan {
			i := slices.IndexFunc(spans.Ended(), func(s sdktrace.ReadOnlySpan) bool {
				return slices.Contains(s.Attributes(), attribute.String("k8s.object.name", name))
			})
			if i < 0 {
				t.Fatalf("no span of %s among %d", name, len(spans.Ended()))
			}
			return spans.Ended()[i]
		}
		good, bad := find("good"), find("bad")
		if good.Name() != "reconcile configmap" || good.Status().Code != codes.Unset || good.EndTime().Before(good.StartTime()) {
			t.Errorf("%s: %v", good.Name(), good.Status())
		}
		writes := func(s sdktrace.ReadOnlySpan) []string {
			for _, a := range s.Attributes() {
				if a.Key == "steer.writes" {
					return a.Value.AsStringSlice()
				}
			}
			return nil
		}
		if !slices.ContainsFunc(writes(good), func(w string) bool { return len(w) > 12 && w[:12] == "apply Secret" }) {
			t.Errorf("the writes are %q", writes(good))
		}
		if bad.Status().Code != codes.Error || !slices.Contains(bad.Attributes(), attribute.String("steer.outcome", "terminal")) {
			t.Errorf("of the failure: %v, %v", bad.Status(), bad.Attributes())
		}
		var got metricdata.ResourceMetrics
		if err := metrics.Collect(t.Context(), &got); err != nil {
			t.Fatal(err)
		}
		var reconciles uint64
		for _, m := range got.ScopeMetrics[0].Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "steer.reconcile.duration" {
				for _, p := range h.DataPoints {
					reconciles += p.Count
				}
			}
		}
		if want := uint64(len(spans.Ended())); reconciles != want || want < 2 {
			t.Errorf("%d reconciles are measured, %d are spans", reconciles, want)
		}
	})
}
