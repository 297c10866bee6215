// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// admit has the defaulter of a manager admit a Pod, and returns the review.
func admit(m *manager.Manager, query string) string { return admitAt(m, "/mutate--v1-pod"+query) }

// admitAt does so with the webhook at a path.
func admitAt(m *manager.Manager, path string) string {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(
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

// looker is a validator of Pods that reads from the cache and from the API server.
type looker struct{ cached client.Client }

func (l looker) ValidateCreate(ctx context.Context, _ *corev1.Pod) (webhook.Warnings, error) {
	key := client.ObjectKey{Namespace: "default", Name: "absent"}
	return nil, errors.Join(
		client.IgnoreNotFound(l.cached.Get(ctx, key, &corev1.ConfigMap{})),
		client.IgnoreNotFound(l.cached.Get(ctx, key, &corev1.ConfigMap{}, client.Live)),
		l.cached.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("empty")),
	)
}

func (looker) ValidateUpdate(context.Context, *corev1.Pod, *corev1.Pod) (webhook.Warnings, error) {
	return nil, nil
}

func (looker) ValidateDelete(context.Context, *corev1.Pod) (webhook.Warnings, error) { return nil, nil }

func TestRecordsOfWebhooksShowTheirReads(t *testing.T) {
	t.Parallel()
	env := newEnv(t, corev1.AddToScheme)
	m := newOperator(t, env.Config, manager.Options{Scheme: env.Client.Scheme(), Webhooks: webhook.Options{Address: "0"}})
	if _, err := m.Cache().Informer(&corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	if err := webhook.AddValidator(m, looker{m.Client()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	if got := admitAt(m, "/validate--v1-pod"); !strings.Contains(got, `"allowed":true`) {
		t.Error(got)
	}
	var got []string
	for r := range m.Recorder().Records() {
		if r.Controller != "/validate--v1-pod" {
			continue
		}
		for _, read := range r.Reads {
			origin := "live"
			if read.Cached {
				origin = "cached"
			}
			got = append(got, strings.TrimSpace(fmt.Sprint(origin, " ", read.Verb, " ", read.Kind, " ", read.Namespace, "/", read.Name, " absent=", read.Absent)))
		}
	}
	want := []string{
		"cached get ConfigMap default/absent absent=true",
		"live get ConfigMap default/absent absent=true",
		"cached list ConfigMap empty/ absent=false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
