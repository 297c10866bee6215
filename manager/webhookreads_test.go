// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"
)

// reader is a defaulter of Pods that reads a ConfigMap from the cache.
type reader struct {
	cached client.Client
	began  chan struct{}
}

func (r reader) Default(ctx context.Context, _ *corev1.Pod) error {
	r.began <- struct{}{}
	return client.IgnoreNotFound(r.cached.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}))
}

// admit has the webhooks of a manager admit a Pod, and returns the review.
func admit(m *manager.Manager, query string) string {
	r := httptest.NewRequest(http.MethodPost, "/mutate--v1-pod"+query, strings.NewReader(
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","name":"a",
		"kind":{"version":"v1","kind":"Pod"},"userInfo":{"username":"alice"},"object":{"metadata":{"name":"a"},"spec":{"containers":[]}}}}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	m.Webhooks().ServeHTTP(w, r)
	return w.Body.String()
}

// TestManagerHasReadsOfWebhooksWaitForItsCaches is about requests that come before the
// caches have been started.
func TestManagerHasReadsOfWebhooksWaitForItsCaches(t *testing.T) {
	t.Parallel()
	env := newEnv(t, corev1.AddToScheme)
	m := newOperator(t, env.Config, manager.Options{Name: "test", Scheme: env.Client.Scheme(), Webhooks: webhook.Options{Address: "0"}})
	if _, err := m.Cache().Informer(&corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	r := reader{m.Client(), make(chan struct{}, 1)}
	if err := webhook.AddDefaulter(m, r); err != nil {
		t.Fatal(err)
	}
	// The API server stops waiting before the manager is started.
	if got := admit(m, "?timeout=10ms"); !strings.Contains(got, "has not synced: not started") {
		t.Errorf("before the start: %s", got)
	}
	<-r.began

	answered := make(chan string, 1)
	go func() { answered <- admit(m, "") }()
	<-r.began
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	if got := <-answered; !strings.Contains(got, `"allowed":true`) {
		t.Errorf("while the manager starts: %s", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
