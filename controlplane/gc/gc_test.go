// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

func testCatalog() steptest.Catalog {
	return steptest.Catalog{
		{Bucket: "configmaps", Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Bucket: "example.com/clusters", Group: "example.com", Version: "v1", Plural: "clusters", Kind: "Cluster"},
	}
}

// world is a store with a collector that follows it.
type world struct {
	t         *testing.T
	store     *storage.Memory
	cursor    storage.Cursor
	collector *Collector
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: storage.NewMemory(storage.MemoryOptions{}), collector: New(testCatalog(), steptest.Decode, nil)}
	cursor, err := w.store.Watch(storage.Range{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.cursor = cursor
	t.Cleanup(cursor.Close)
	return w
}

// object states one object: "namespace/name", its uid, and changes to it.
func (w *world) object(name, uid string, with ...func(*metav1.ObjectMeta)) {
	w.t.Helper()
	o := &steptest.Object{Metadata: metav1.ObjectMeta{UID: types.UID(uid)}}
	for _, change := range with {
		change(&o.Metadata)
	}
	bucket := "example.com/clusters"
	if strings.Contains(name, "/") {
		bucket = "configmaps"
	}
	steptest.Put(w.t, w.store, storage.Key{Bucket: bucket, Name: name}, o)
}

func (w *world) gone(name string) {
	w.t.Helper()
	steptest.Put(w.t, w.store, storage.Key{Bucket: "configmaps", Name: name}, nil)
}

func (w *world) catchUp() {
	w.t.Helper()
	batch, err := w.cursor.Poll()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range batch.Events {
		steptest.Observe(w.collector, e)
	}
}

// requests returns what the collector asks for, one line each.
func (w *world) requests() string {
	w.t.Helper()
	w.catchUp()
	requests := w.collector.Sync(w.store.Latest(), time.Time{})
	for _, r := range requests {
		w.collector.Done(r, nil)
	}
	return render(requests)
}

func render(requests []step.Request) string {
	var out []string
	for _, r := range requests {
		out = append(out, fmt.Sprintf("%s %s: %s", r.Method, r.Path, r.Subject.Detail))
	}
	return strings.Join(out, "\n")
}

func ownedBy(name, uid string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		m.OwnerReferences = append(m.OwnerReferences, steptest.Owner("v1", "ConfigMap", name, types.UID(uid), true))
	}
}

func ownedByCluster(name, uid string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		m.OwnerReferences = append(m.OwnerReferences, steptest.Owner("example.com/v1", "Cluster", name, types.UID(uid), false))
	}
}

func ownedByKind(kind string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		m.OwnerReferences = append(m.OwnerReferences, steptest.Owner("v1", kind, "x", "x", false))
	}
}

func deleting(finalizers ...string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		now := metav1.NewTime(time.Unix(1, 0))
		m.DeletionTimestamp = &now
		m.Finalizers = finalizers
	}
}

func TestCollectorRequestsFollowFromTheState(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		state func(*world)
		want  string
	}{
		{"nothing to do for an object without owners", func(w *world) { w.object("a/x", "1") }, ""},
		{"nothing to do while the owner lives", func(w *world) {
			w.object("a/owner", "1")
			w.object("a/child", "2", ownedBy("owner", "1"))
		}, ""},
		{"absent owner", func(w *world) { w.object("a/child", "2", ownedBy("owner", "1")) },
			"DELETE /api/v1/namespaces/a/configmaps/child: delete Background"},
		{"owner with another uid", func(w *world) {
			w.object("a/owner", "9")
			w.object("a/child", "2", ownedBy("owner", "1"))
		}, "DELETE /api/v1/namespaces/a/configmaps/child: delete Background"},
		{"owner in another namespace", func(w *world) {
			w.object("b/owner", "1")
			w.object("a/child", "2", ownedBy("owner", "1"))
		}, "DELETE /api/v1/namespaces/a/configmaps/child: delete Background"},
		{"cluster-scoped owner", func(w *world) {
			w.object("owner", "1")
			w.object("a/child", "2", ownedByCluster("owner", "1"))
		}, ""},
		{"cluster-scoped child of a namespaced owner is left alone", func(w *world) { w.object("child", "2", ownedBy("owner", "1")) }, ""},
		{"owner of a kind that is not served is left alone", func(w *world) { w.object("a/child", "2", ownedByKind("Unknown")) }, ""},
		{"living owner beside an absent one", func(w *world) {
			w.object("a/owner", "1")
			w.object("a/child", "2", ownedBy("owner", "1"), ownedBy("gone", "3"))
		}, "PATCH /api/v1/namespaces/a/configmaps/child: drop owners"},
		{"owner waiting in the foreground", func(w *world) {
			w.object("a/owner", "1", deleting(metav1.FinalizerDeleteDependents))
			w.object("a/child", "2", ownedBy("owner", "1"))
		}, "DELETE /api/v1/namespaces/a/configmaps/child: delete Background"},
		{"owner waiting in the foreground for a child with children", func(w *world) {
			w.object("a/owner", "1", deleting(metav1.FinalizerDeleteDependents))
			w.object("a/child", "2", ownedBy("owner", "1"))
			w.object("a/grandchild", "3", ownedBy("child", "2"))
		}, "DELETE /api/v1/namespaces/a/configmaps/child: delete Foreground"},
		{"owner without dependents", func(w *world) {
			w.object("a/owner", "1", deleting(metav1.FinalizerDeleteDependents, "x/y"))
		}, "PATCH /api/v1/namespaces/a/configmaps/owner: remove finalizer foregroundDeletion"},
		{"owner does not wait for those that do not block it", func(w *world) {
			w.object("owner", "1", deleting(metav1.FinalizerDeleteDependents))
			w.object("a/child", "2", ownedByCluster("owner", "1"), deleting("x/y"))
		}, "PATCH /apis/example.com/v1/clusters/owner: remove finalizer foregroundDeletion"},
		{"orphaning owner with children", func(w *world) {
			w.object("a/owner", "1", deleting(metav1.FinalizerOrphanDependents))
			w.object("a/child", "2", ownedBy("owner", "1"))
		}, "PATCH /api/v1/namespaces/a/configmaps/child: drop owners"},
		{"orphaning owner without children", func(w *world) {
			w.object("a/owner", "1", deleting(metav1.FinalizerOrphanDependents))
		}, "PATCH /api/v1/namespaces/a/configmaps/owner: remove finalizer orphan"},
		{"circle of objects that wait for each other", func(w *world) {
			w.object("a/x", "1", deleting(metav1.FinalizerDeleteDependents), ownedBy("y", "2"))
			w.object("a/y", "2", ownedBy("x", "1"))
		}, "PATCH /api/v1/namespaces/a/configmaps/y: unblock owners"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.state(w)
			// The orphaning owner waits too, so its child is not deleted in the
			// same step.
			got := w.requests()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if again := w.requests(); again != "" {
				t.Errorf("asked again without any change:\n%s", again)
			}
		})
	}
}

func TestCollectorReachesDependentsOfDeletedOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.object("a/owner", "1")
	w.object("a/child", "2", ownedBy("owner", "1"))
	if got := w.requests(); got != "" {
		t.Fatalf("unexpected requests:\n%s", got)
	}
	w.gone("a/owner")
	want := "DELETE /api/v1/namespaces/a/configmaps/child: delete Background"
	if diff := cmp.Diff(want, w.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestIndexEqualsRebuild drives a collector through random histories: its
// index and what it asks for must be those of one that starts from the snapshot.
func TestIndexEqualsRebuild(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		w := newWorld(t)
		chance := rand.New(rand.NewPCG(seed, 0))
		asked := map[string]bool{}
		for round := range 60 {
			randomChange(w, chance)
			for line := range strings.Lines(w.requests()) {
				asked[strings.TrimSpace(line)] = true
			}
			view := w.store.Latest()
			rebuilt := New(testCatalog(), steptest.Decode, nil)
			rebuilt.Reset(view)
			if diff := cmp.Diff(rebuilt.index, w.collector.index, cmp.AllowUnexported(index{})); diff != "" {
				t.Fatalf("seed %d, round %d: the kept index differs (-rebuilt +kept):\n%s", seed, round, diff)
			}
			for line := range strings.Lines(render(rebuilt.Sync(view, time.Time{}))) {
				if line = strings.TrimSpace(line); !asked[line] {
					t.Fatalf("seed %d, round %d: the kept index never led to %s", seed, round, line)
				}
			}
		}
	}
}

func randomChange(w *world, chance *rand.Rand) {
	namespace := string("ab"[chance.IntN(2)])
	n := chance.IntN(4)
	name := fmt.Sprintf("%s/o%d", namespace, n)
	key := storage.Key{Bucket: "configmaps", Name: name}
	if chance.IntN(4) == 0 {
		if w.store.Latest().Get(key) != nil {
			w.gone(name)
		}
		return
	}
	var with []func(*metav1.ObjectMeta)
	for range chance.IntN(3) {
		other := chance.IntN(4)
		with = append(with, ownedBy(fmt.Sprintf("o%d", other), fmt.Sprintf("%c%d", "ab"[chance.IntN(2)], other)))
	}
	switch chance.IntN(5) {
	case 0:
		with = append(with, deleting(metav1.FinalizerDeleteDependents))
	case 1:
		with = append(with, deleting(metav1.FinalizerOrphanDependents))
	}
	w.object(name, fmt.Sprintf("%s%d", namespace, n), with...)
}
