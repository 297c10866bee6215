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

// TestPodsThatChangeTheirScopeAreCharged holds that an update which gives a Pod a deadline
// is charged to the quotas of Pods that terminate before it is answered, and refused where
// they are full.
func TestPodsThatChangeTheirScopeAreCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hard := amounts("pods", "1")
	w.put(key(bucket, "q"), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "q"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard, Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}},
		Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: amounts("pods", "0")},
	})
	a := NewAdmission(w.store, func(_ context.Context, r step.Request) error {
		w.put(r.Subject.Key, json.RawMessage(r.Body))
		return nil
	}, w.ledger, nil)
	deadline := func(name string, seconds *int64) *resource.AdmissionRequest {
		r := creation(name)
		r.Old = r.Object.DeepCopyObject().(resource.Object)
		r.Operation, r.Object.(*corev1.Pod).Spec.ActiveDeadlineSeconds = resource.Update, seconds
		return r
	}
	validate := func(r *resource.AdmissionRequest, refused bool, used string) {
		t.Helper()
		if err := a.Validate(t.Context(), r); apierrors.IsForbidden(err) != refused || !refused && err != nil {
			t.Errorf("%v of %s: %v, refused is to be %t", r.Operation, r.Name, err, refused)
		}
		if got := w.used("q"); got != used {
			t.Errorf("%v of %s: used %s, want %s", r.Operation, r.Name, got, used)
		}
	}
	validate(deadline("a", nil), false, "pods=0")
	validate(deadline("a", ptr(int64(60))), false, "pods=1")
	validate(deadline("b", ptr(int64(60))), true, "pods=1")
	created := creation("c")
	created.Object.(*corev1.Pod).Spec.ActiveDeadlineSeconds = ptr(int64(60))
	validate(created, true, "pods=1")
	back := deadline("a", ptr(int64(60)))
	back.Object, back.Old = back.Old, back.Object
	validate(back, false, "pods=1") // the controller takes it off, once it is stored
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
			w.controller.Done(r, nil)
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
	if err := NewAdmission(w.store, send, w.ledger, nil).Validate(t.Context(), r); err != nil {
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
