// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package expiry

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a store with an expirer that follows it.
type world struct {
	t       *testing.T
	store   *storage.Memory
	cursor  storage.Cursor
	expirer *Expirer
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: storage.NewMemory(storage.MemoryOptions{}), expirer: New()}
	cursor, err := w.store.Watch(storage.Range{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.cursor = cursor
	t.Cleanup(cursor.Close)
	return w
}

// event states an event by the times, in minutes, at which it was written.
func (w *world) event(name string, written ...int) {
	w.t.Helper()
	o := &steptest.Object{}
	for i, minute := range written {
		at := metav1.NewTime(start.Add(time.Duration(minute) * time.Minute))
		if i == 0 {
			o.Metadata.CreationTimestamp = at
		}
		o.Metadata.ManagedFields = append(o.Metadata.ManagedFields, metav1.ManagedFieldsEntry{Time: &at})
	}
	steptest.Put(w.t, w.store, storage.Key{Bucket: bucket, Name: "default/" + name}, o)
	w.catchUp()
}

func (w *world) catchUp() {
	w.t.Helper()
	batch, err := w.cursor.Poll()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range batch.Events {
		steptest.Observe(w.expirer, e)
	}
}

func (w *world) at(minute int) []step.Request {
	w.t.Helper()
	return w.expirer.Sync(w.store.Latest(), start.Add(time.Duration(minute)*time.Minute))
}

func paths(requests []step.Request) []string {
	var out []string
	for _, r := range requests {
		out = append(out, fmt.Sprintf("%s %s %s", r.Method, r.Path, r.Body))
	}
	return out
}

func deletion(name string, revision int) string {
	return fmt.Sprintf(`DELETE /api/v1/namespaces/default/events/%s {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"%d"}}`, name, revision)
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestExpiryDeletesEventsAnHourAfterTheirLastWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.event("b", 0)
	w.event("a", 0)
	w.event("c", 0, 30)
	equal(t, "wakes", start.Add(Life), w.expirer.Wake())
	equal(t, "too early", 0, len(w.at(59)))
	equal(t, "after an hour", []string{deletion("a", 2), deletion("b", 1)}, paths(w.at(60)))
	equal(t, "asked once", 0, len(w.at(61)))
	equal(t, "wakes for the next", start.Add(90*time.Minute), w.expirer.Wake())
	w.event("c", 0, 30, 80)
	equal(t, "written in between", 0, len(w.at(90)))
	equal(t, "in the end", []string{deletion("c", 4)}, paths(w.at(140)))
	equal(t, "nothing is left to wake for", time.Time{}, w.expirer.Wake())
}

func TestExpiryRepeatsRefusedDeletions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.event("a", 0)
	asked := w.at(60)
	w.expirer.Done(asked[0], errors.New("busy"))
	equal(t, "again", paths(asked), paths(w.at(60)))
	w.expirer.Done(asked[0], errors.New("busy"))
	w.event("a", 0, 59)
	equal(t, "not the version that was saved", 0, len(w.at(61)))
	w.expirer.Done(asked[0], nil)
	steptest.Put(t, w.store, storage.Key{Bucket: bucket, Name: "default/a"}, nil)
	w.catchUp()
	equal(t, "gone", 0, len(w.at(300)))
}

// TestIndexEqualsRebuild writes at random: what the expirer knows must be what
// it would learn from a snapshot.
func TestIndexEqualsRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		name := fmt.Sprint(random.IntN(20))
		if random.IntN(4) == 0 {
			key := storage.Key{Bucket: bucket, Name: "default/" + name}
			if w.store.Latest().Get(key) != nil {
				steptest.Put(t, w.store, key, nil)
				w.catchUp()
			}
			continue
		}
		w.event(name, random.IntN(60), random.IntN(600))
		rebuilt := New()
		rebuilt.Reset(w.store.Latest())
		if !maps.Equal(rebuilt.current, w.expirer.current) {
			t.Fatalf("known: %v\nrebuilt: %v", w.expirer.current, rebuilt.current)
		}
		equal(t, "wakes", rebuilt.Wake(), w.expirer.Wake())
	}
	rebuilt := New()
	view := w.store.Latest()
	rebuilt.Reset(view)
	want, got := paths(rebuilt.Sync(view, start.Add(24*time.Hour))), paths(w.at(24*60))
	if len(want) == 0 || !slices.Equal(want, got) {
		t.Errorf("rebuilt asks for %v, the other for %v", want, got)
	}
}
