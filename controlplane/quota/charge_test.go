// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
)

// creation is the request that creates a Pod.
func creation(name string) *resource.AdmissionRequest {
	return &resource.AdmissionRequest{
		Request: &resource.Request{
			Resource:  &resource.Resource{Names: resource.Names{Plural: "pods", Namespaced: true}, Storage: resource.Storage{Bucket: "pods"}},
			Namespace: "default", Name: name,
		},
		Operation: resource.Create, Finish: &resource.Finish{},
		Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}},
	}
}

// TestChargeCountsOnceItIsWritten has the controller count at every moment of a charge
// that fails at first, because the quota has changed. The charge is in the
// status of the quota, or in nothing.
func TestChargeCountsOnceItIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signals := 0
	w.controller.OnSignal(func() { signals++ })
	w.quota("q", amounts("pods", "1"))
	w.want("at first", "pods=0")
	counts := func(what string) {
		t.Helper()
		w.put(key("configmaps", "c"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"at": what}}})
		for _, r := range w.requests() {
			t.Errorf("%s: the controller asks for %s %s", what, r.Method, r.Body)
			w.put(r.Subject.Key, json.RawMessage(r.Body))
			w.controller.Report(r, nil)
		}
	}
	annotate := func() {
		t.Helper()
		w.put(key(bucket, "q"), &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "q", Annotations: map[string]string{"a": "b"}},
			Spec:       corev1.ResourceQuotaSpec{Hard: amounts("pods", "1")},
			Status:     corev1.ResourceQuotaStatus{Hard: amounts("pods", "1"), Used: amounts("pods", "0")},
		})
	}
	sent := 0
	send := func(_ context.Context, r step.Request) error {
		if sent++; sent == 1 {
			counts("before it is written")
			annotate()
			counts("after it has lost")
			return apierrors.NewConflict(schema.GroupResource{Resource: bucket}, "q", nil)
		}
		w.put(r.Subject.Key, json.RawMessage(r.Body))
		counts("written, not answered")
		return nil
	}
	r := creation("a")
	if err := NewAdmission(w.store, send, w.ledger).Validate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if sent != 2 || signals == 0 {
		t.Errorf("%d writes of the status and %d signals, want 2 writes, and a signal for what the controller has left", sent, signals)
	}
	w.want("charged", "pods=1")
	w.pod("a", "1")
	w.want("stored", "pods=1")
	if n := w.ledger.pending.Load(); n != 0 {
		t.Errorf("%d charges are left", n)
	}
}
