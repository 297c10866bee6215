// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

func testCatalog() steptest.Catalog {
	return steptest.Catalog{
		{Bucket: "configmaps", Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Bucket: "example.com/widgets", Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true},
		{Bucket: "namespaces", Version: "v1", Plural: "namespaces", Kind: "Namespace"},
		{Bucket: "pods", Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true},
	}
}

// world is a store with the terminating namespace "doomed" and an emptier that
// follows it.
type world struct {
	t       *testing.T
	store   *storage.Memory
	cursor  storage.Cursor
	emptier *Emptier
	last    []step.Request
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: storage.NewMemory(storage.MemoryOptions{}), emptier: New(testCatalog(), steptest.Decode, nil)}
	cursor, err := w.store.Watch(storage.Range{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.cursor = cursor
	t.Cleanup(cursor.Close)
	w.namespace()
	return w
}

func (w *world) namespace() {
	deleted := metav1.NewTime(time.Unix(1, 0))
	w.put("namespaces", "doomed", &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "doomed", UID: "1", DeletionTimestamp: &deleted},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating},
	})
}

func (w *world) put(bucket, name string, o any) {
	w.t.Helper()
	steptest.Put(w.t, w.store, storage.Key{Bucket: bucket, Name: name}, o)
}

func (w *world) object(bucket, name string, finalizers ...string) {
	w.t.Helper()
	o := &steptest.Object{Metadata: metav1.ObjectMeta{UID: "2", Finalizers: finalizers}}
	if len(finalizers) > 0 {
		now := metav1.NewTime(time.Unix(1, 0))
		o.Metadata.DeletionTimestamp = &now
	}
	w.put(bucket, name, o)
}

// requests returns what the emptier asks for now.
func (w *world) requests() []string {
	w.t.Helper()
	batch, err := w.cursor.Poll()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range batch.Events {
		steptest.Observe(w.emptier, e)
	}
	for _, r := range w.last {
		w.emptier.Done(r, nil)
	}
	w.last = w.emptier.Sync(w.store.Latest(), time.Unix(2, 0))
	var out []string
	for _, r := range w.last {
		out = append(out, r.Method+" "+r.Path)
	}
	return out
}

// obey carries out the status updates that were asked for.
func (w *world) obey() {
	w.t.Helper()
	for _, r := range w.last {
		if strings.HasSuffix(r.Path, "/status") {
			w.put("namespaces", "doomed", json.RawMessage(r.Body))
		}
		w.emptier.Done(r, nil)
	}
	w.last = nil
}

func (w *world) conditions() []string {
	w.t.Helper()
	ns := &corev1.Namespace{}
	if err := json.Unmarshal(w.store.Latest().Get(storage.Key{Bucket: Bucket, Name: "doomed"}).Value, ns); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			out = append(out, fmt.Sprintf("%s %s: %s", c.Type, c.Reason, c.Message))
		}
	}
	return out
}

func expect(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func TestNamespaceIsEmptiedThenFinalized(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.object("pods", "doomed/p")
	w.object("configmaps", "doomed/c")
	w.object("configmaps", "other/c")
	w.object("example.com/widgets", "doomed/w")
	expect(t, "pods go first", []string{"DELETE /api/v1/namespaces/doomed/pods"}, w.requests())
	w.put("pods", "doomed/p", nil)
	expect(t, "then the rest", []string{"DELETE /api/v1/namespaces/doomed/configmaps", "DELETE /apis/example.com/v1/namespaces/doomed/widgets"}, w.requests())
	w.put("configmaps", "doomed/c", nil)
	w.object("example.com/widgets", "doomed/w", "example.com/hold")
	expect(t, "what stays is told", []string{"PUT /api/v1/namespaces/doomed/status"}, w.requests())
	w.obey()
	expect(t, "conditions", []string{
		"NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: widgets.example.com has 1 resource instances",
		"NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
	}, w.conditions())
	expect(t, "then it waits", nil, w.requests())
	w.put("example.com/widgets", "doomed/w", nil)
	expect(t, "the last one has gone", []string{"PUT /api/v1/namespaces/doomed/status"}, w.requests())
	w.obey()
	expect(t, "conditions at the end", nil, w.conditions())
	expect(t, "the end", []string{"PUT /api/v1/namespaces/doomed/finalize"}, w.requests())
	w.put("namespaces", "doomed", nil)
	expect(t, "after the end", nil, w.requests())
}

func TestNamespaceConditionsReportFailuresThatAreRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.object("configmaps", "doomed/c")
	w.requests()
	w.emptier.Done(w.last[0], errors.New("no"))
	w.last = nil
	expect(t, "status, then again", []string{"PUT /api/v1/namespaces/doomed/status", "DELETE /api/v1/namespaces/doomed/configmaps"}, w.requests())
	w.obey()
	want := "NamespaceDeletionContentFailure ContentDeletionFailed: Failed to delete all resource types, 1 remaining: no"
	if got := w.conditions()[0]; got != want {
		t.Errorf("condition %q, want %q", got, want)
	}
}

func TestNamespacesInUseAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("namespaces", "doomed", nil)
	w.put("namespaces", "alive", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "alive", UID: "3"}})
	w.object("configmaps", "alive/c")
	expect(t, "requests", nil, w.requests())
}
