// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/webhook"
	"github.com/steer-dev/steer/webhook/conversion"
)

// podDefaulter is a defaulter of Pods.
type podDefaulter struct{}

func (podDefaulter) Default(_ context.Context, pod *corev1.Pod) error {
	if pod.Name == "broken" {
		panic("broken")
	}
	pod.Spec.PriorityClassName = "low"
	return nil
}

// post sends an admission request about a Pod to the webhooks of a manager.
func post(m *Manager, path, pod string) *httptest.ResponseRecorder {
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","name":%q,
		"kind":{"version":"v1","kind":"Pod"},"userInfo":{"username":"alice"},"object":{"metadata":{"name":%q},"spec":{"containers":[]}}}}`, pod, pod)
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	m.Webhooks().ServeHTTP(w, r)
	return w
}

func TestManagerMeasuresAndRecordsItsWebhooks(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	m := newManager(t, func(o *Options) { o.Scheme = scheme })
	if err := webhook.AddDefaulter(m, podDefaulter{}); err != nil {
		t.Fatal(err)
	}
	const path = "/mutate--v1-pod"
	for _, pod := range []string{"a", "b", "broken"} {
		if w := post(m, path, pod); w.Code != http.StatusOK || (pod != "broken") != strings.Contains(w.Body.String(), "patchType") {
			t.Errorf("%s: %d %s", pod, w.Code, w.Body)
		}
	}
	if w := post(m, path+"?timeout=1s", strings.Repeat("x", 8<<20)); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", w.Code)
	}
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if !strings.Contains(f.GetName(), "webhook") {
			continue
		}
		for _, metric := range f.GetMetric() {
			labels := ""
			for _, l := range metric.GetLabel() {
				labels += " " + l.GetValue()
			}
			got[f.GetName()+labels] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"controller_runtime_webhook_requests_total 200 " + path: 3,
		"controller_runtime_webhook_requests_total 413 " + path: 1,
		"controller_runtime_webhook_requests_total 500 " + path: 0,
		"controller_runtime_webhook_requests_in_flight " + path: 0,
		"controller_runtime_webhook_latency_seconds " + path:    4,
		"controller_runtime_webhook_panics_total":               1,
		"controller_runtime_conversion_webhook_panics_total":    0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v (%v), want %v", name, value, ok, want)
		}
	}
	var outcomes []trace.Outcome
	for r := range m.Recorder().Records() {
		outcomes = append(outcomes, r.Outcome)
	}
	if want := []trace.Outcome{trace.Allowed, trace.Allowed, trace.Panicked}; !slices.Equal(outcomes, want) {
		t.Errorf("recorded %v, want %v", outcomes, want)
	}
}

// The kind of two versions.
type (
	hub   struct{ corev1.ConfigMap }
	spoke struct{ corev1.ConfigMap }
)

func (h *hub) Hub()                             {}
func (h *hub) DeepCopyObject() runtime.Object   { out := *h; return &out }
func (s *spoke) DeepCopyObject() runtime.Object { out := *s; return &out }
func (*spoke) ConvertTo(conversion.Hub) error   { return nil }
func (*spoke) ConvertFrom(conversion.Hub) error { return nil }

func addConvertible(s *runtime.Scheme) error {
	for version, obj := range map[string]runtime.Object{"v1": &hub{}, "v1beta1": &spoke{}} {
		s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Thing"}, obj)
	}
	return nil
}

// TestManagerIsReadyBeforeCachesThatItsOwnConversionFills is about the first replica:
// the list of a cache is converted by replicas that are ready.
func TestManagerIsReadyBeforeCachesThatItsOwnConversionFills(t *testing.T) {
	t.Parallel()
	for _, converts := range []bool{true, false} {
		scheme, err := client.NewScheme(addConvertible)
		if err != nil {
			t.Fatal(err)
		}
		m := newManager(t, func(o *Options) { o.Scheme, o.Webhooks.Address = scheme, "127.0.0.1:0" })
		if _, err := m.Cache().Informer(&hub{}); err != nil {
			t.Fatal(err)
		}
		if converts {
			if err := webhook.AddConversion(m, &hub{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.cachesSynced(nil); (err == nil) != converts {
			t.Errorf("converts %v: %v", converts, err)
		}
	}
}

// TestManagerServesWebhooksBeforeItsCachesAreSynced runs a manager whose API server
// cannot be reached.
func TestManagerServesWebhooksBeforeItsCachesAreSynced(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	serving := make(chan struct{})
	m := newManager(t, func(o *Options) {
		o.Scheme, o.Webhooks.Address = scheme, "127.0.0.1:0"
		o.Log = signalOn("webhooks", serving)
	})
	if _, err := m.Cache().Informer(&corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if err := webhook.AddDefaulter(m, podDefaulter{}); err != nil {
		t.Fatal(err)
	}
	if err := m.webhooks.Ready(nil); err == nil {
		t.Error("webhooks that are not served are ready")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	<-serving
	if err := m.webhooks.Ready(nil); err != nil {
		t.Error(err)
	}
	if err := m.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "cache") {
		t.Errorf("the manager is ready: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestManagerEndsWithTheReasonWhenWebhooksCannotBeServed(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	m := newManager(t, func(o *Options) { o.Scheme, o.Webhooks.TLS.Dir = scheme, t.TempDir() })
	if err := webhook.AddDefaulter(m, podDefaulter{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "--webhook-cert-path") {
		t.Errorf("got %v", err)
	}
}

// signalOn is a log that closes a channel with the first line that says "Serving" for
// a server.
func signalOn(server string, seen chan struct{}) *slog.Logger {
	var once sync.Once
	return slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "server" && a.Value.String() == server {
			once.Do(func() { close(seen) })
		}
		return a
	}}))
}

func TestManagerKeepsTheConfigurationsOfItsDeployment(t *testing.T) {
	t.Parallel()
	got := webhookConfigurations("guestbook")
	for _, want := range []string{"validating-webhook-configuration", "guestbook-validating-webhook-configuration", "guestbook-mutating-webhook-configuration"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %v", want, got)
		}
	}
}
