// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
)

// start starts the cache and ends it with the test; inside a bubble the caller
// stops it.
func (r *rig) start() {
	r.t.Helper()
	if err := r.cache.Start(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) informer(obj client.Object) cache.Informer {
	r.t.Helper()
	inf, err := r.cache.Informer(obj)
	if err != nil {
		r.t.Fatal(err)
	}
	return inf
}

func (r *rig) synced() {
	r.t.Helper()
	if err := r.cache.WaitForSync(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// eventLog collects events as text.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

// take empties the log.
func (l *eventLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func (l *eventLog) handler(e cache.Event) {
	line := fmt.Sprintf("%s %s", e.Type, cache.KeyOf(e.Object))
	if cm, ok := e.Object.(*corev1.ConfigMap); ok && cm.Data["v"] != "" {
		line += " v=" + cm.Data["v"]
	}
	for flag, on := range map[string]bool{" initial": e.Initial, " inferred": e.Inferred, " resync": e.Resync} {
		if on {
			line += flag
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *eventLog) expect(t testing.TB, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, l.take()); diff != "" {
		t.Fatalf("events: (-want +got)\n%s", diff)
	}
}

func v(value string) map[string]string { return map[string]string{"v": value} }

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

func TestAChangeIsComparedOnceForAllHandlers(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		compared, heard := 0, 0
		compare := func(before, after any) string {
			compared++
			return before.(*corev1.ConfigMap).Data["v"] + " to " + after.(*corev1.ConfigMap).Data["v"]
		}
		for range 3 {
			r.informer(&corev1.ConfigMap{}).AddHandler(func(e cache.Event) {
				if got := e.Changed(compare); e.Type == cache.Updated && got == "1 to 2" || e.Type == cache.Added && got == "" {
					heard++
				}
			})
		}
		r.start()
		r.synced()
		r.server.Put("configmaps", "default", "a", v("2"), nil)
		synctest.Wait()
		if compared != 1 || heard != 6 {
			t.Errorf("compared %d times, want once; %d of 6 events were right", compared, heard)
		}
	})
}

func TestHandlersSeeTheListAndThenEveryChange(t *testing.T) {
	inBubble(t, cache.Options{PageSize: 2}, func(t *testing.T, r *rig) {
		for i := range 5 {
			r.server.Put("configmaps", "default", fmt.Sprint("a", i), v("1"), nil)
		}
		var seen eventLog
		r.informer(&corev1.ConfigMap{}).AddHandler(seen.handler)
		r.start()
		r.synced()
		seen.expect(t, "added default/a0 v=1 initial", "added default/a1 v=1 initial", "added default/a2 v=1 initial", "added default/a3 v=1 initial", "added default/a4 v=1 initial")
		r.server.Put("configmaps", "default", "a1", v("2"), nil)
		r.server.Delete("configmaps", "default", "a2")
		r.server.Put("configmaps", "default", "b", v("1"), nil)
		seen.expect(t, "updated default/a1 v=2", "deleted default/a2 v=1", "added default/b v=1")

		var late eventLog
		registration := r.informer(&corev1.ConfigMap{}).AddHandler(late.handler)
		late.expect(t, "added default/a0 v=1 initial", "added default/a1 v=2 initial", "added default/a3 v=1 initial", "added default/a4 v=1 initial", "added default/b v=1 initial")
		if !registration.HasSynced() {
			t.Fatal("a handler added to a synced informer has not synced")
		}
		registration.Remove()
		r.server.Put("configmaps", "default", "c", v("1"), nil)
		late.expect(t)
		seen.expect(t, "added default/c v=1")
		if n := r.server.Watches(); n != 1 {
			t.Fatalf("%d watches for two informers of one kind, want 1", n)
		}
	})
}

func TestTheOriginalOfACachedReadIsTheCachesOwn(t *testing.T) {
	test := func(t *testing.T, compact bool) {
		inBubble(t, cache.Options{Compact: compact}, func(t *testing.T, r *rig) {
			r.server.Put("configmaps", "default", "a", v("1"), nil)
			r.informer(&corev1.ConfigMap{})
			r.start()
			r.synced()
			reader := r.client.(cache.OriginalReader)
			read := func() (*corev1.ConfigMap, client.Object) {
				var cm corev1.ConfigMap
				original, err := reader.GetOriginal(context.Background(), key("a"), &cm)
				if err != nil {
					t.Fatal(err)
				}
				return &cm, original
			}
			first, original := read()
			if first.Data["v"] != "1" {
				t.Errorf("got %v", first.Data)
			}
			if compact {
				if original != nil {
					t.Error("an encoded object has an original")
				}
				return
			}
			second, same := read()
			if original == nil || same != original || client.Object(first) == original || first == second {
				t.Errorf("originals %p and %p, copies %p and %p: want one original and two copies", original, same, first, second)
			}
			if diff := cmp.Diff(client.Object(first), original); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("as it is", func(t *testing.T) { test(t, false) })
	t.Run("compact", func(t *testing.T) { test(t, true) })
}

func TestCachedReadsArePrivateCopiesWithoutManagedFields(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), map[string]string{"app": "x"})
		r.server.Put("configmaps", "other", "b", v("2"), map[string]string{"app": "y"})
		r.informer(&corev1.ConfigMap{})
		r.start()
		ctx := context.Background()
		var cm corev1.ConfigMap
		if err := r.client.Get(ctx, key("a"), &cm); err != nil {
			t.Fatal(err)
		}
		if cm.Data["v"] != "1" || cm.Kind != "ConfigMap" || cm.ManagedFields != nil {
			t.Fatalf("got %+v", cm)
		}
		cm.Data["v"] = "changed" // private: the mutation detector would panic at Stop
		err := r.client.Get(ctx, key("missing"), &cm)
		if !apierrors.IsNotFound(err) {
			t.Fatalf("a missing object: %v, want NotFound", err)
		}
		list := func(opts ...client.ListOption) (names []string) {
			var l corev1.ConfigMapList
			if err := r.client.List(ctx, &l, opts...); err != nil {
				t.Fatal(err)
			}
			for i := range l.Items {
				names = append(names, cache.KeyOf(&l.Items[i]))
			}
			return names
		}
		for _, c := range []struct {
			name string
			opts []client.ListOption
			want []string
		}{
			{"all", nil, []string{"default/a", "other/b"}},
			{"namespace", []client.ListOption{client.InNamespace("other")}, []string{"other/b"}},
			{"labels", []client.ListOption{client.MatchingLabels{"app": "x"}}, []string{"default/a"}},
			{"name", []client.ListOption{client.MatchingFields{"metadata.name": "b"}}, []string{"other/b"}},
			{"nothing", []client.ListOption{client.InNamespace("default"), client.MatchingLabels{"app": "y"}}, nil},
			{"limit", []client.ListOption{client.Limit(1)}, []string{"default/a"}},
		} {
			if diff := cmp.Diff(c.want, list(c.opts...)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.name, diff)
			}
		}
		var l corev1.ConfigMapList
		if err := r.client.List(ctx, &l, client.Limit(1)); err != nil || l.Continue == "" {
			t.Fatalf("first page: continue %q, %v", l.Continue, err)
		}
		if err := r.client.List(ctx, &l, client.Limit(1), client.Continue(l.Continue)); err != nil || len(l.Items) != 1 || l.Items[0].Name != "b" || l.Continue != "" {
			t.Fatalf("second page: %+v, %v", l, err)
		}
		if err := r.client.List(ctx, &l, client.MatchingFields{"data.v": "1"}); err == nil {
			t.Fatal("a field without an index was accepted")
		}
		if err := r.cache.IndexField(&corev1.ConfigMap{}, "data.v", func(o client.Object) []string { return []string{o.(*corev1.ConfigMap).Data["v"]} }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"other/b"}, list(client.MatchingFields{"data.v": "2"})); diff != "" {
			t.Fatalf("by index: (-want +got)\n%s", diff)
		}
		var partial metav1.PartialObjectMetadata
		partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if err := r.client.Get(ctx, key("a"), &partial); err != nil || partial.Labels["app"] != "x" {
			t.Fatalf("metadata of a typed informer: %+v, %v", partial, err)
		}
		if n := r.server.Watches(); n != 1 {
			t.Fatalf("%d watches, want 1: metadata is part of the typed objects", n)
		}
	})
}

func TestUnstructuredAndMetadataInformers(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.ServeWidgets(true)
		r.server.Put("widgets", "default", "w", v("1"), nil)
		r.informer(client.NewUnstructured(widgetKind))
		r.start()
		u := client.NewUnstructured(widgetKind)
		if err := r.client.Get(context.Background(), key("w"), u); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedString(u.Object, "spec", "value"); got != "1" || u.GetManagedFields() != nil {
			t.Fatalf("got %v", u.Object)
		}
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(widgetKind.GroupVersion().WithKind("WidgetList"))
		if err := r.client.List(context.Background(), l); err != nil || len(l.Items) != 1 {
			t.Fatalf("list %v, %v", l, err)
		}
	})
}

func TestUndeclaredReadsAreLiveByDefault(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		r.start()
		var cm corev1.ConfigMap
		if err := r.client.Get(context.Background(), key("a"), &cm); err != nil || cm.Data["v"] != "1" {
			t.Fatalf("%+v, %v", cm, err)
		}
		if n := len(r.cache.Informers()); n != 0 {
			t.Fatalf("%d informers, want none", n)
		}
	})
}

func TestUndeclaredReadsCanBeErrorsOrWatches(t *testing.T) {
	inBubble(t, cache.Options{Undeclared: cache.UndeclaredError}, func(t *testing.T, r *rig) {
		r.start()
		err := r.client.Get(context.Background(), key("a"), &corev1.ConfigMap{})
		const want = "get ConfigMap default/a: the cache does not watch ConfigMap: declare it with controller.Owns[*v1.ConfigMap](), Watches or References of a controller that makes or follows these objects, else m.Cache().Informer(&v1.ConfigMap{}), or read with client.Live"
		if err == nil || err.Error() != want {
			t.Fatalf("got %v\nwant %s", err, want)
		}
		watching := newRig(t, cache.Options{Undeclared: cache.UndeclaredWatch})
		defer watching.cache.Stop()
		watching.server.Put("configmaps", "default", "a", v("1"), nil)
		watching.start()
		if err := watching.client.Get(context.Background(), key("a"), &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		if n := watching.server.Watches(); n != 1 {
			t.Fatalf("%d watches, want 1", n)
		}
	})
}

func TestClosingTheLastHoldEndsTheWatch(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.start()
		one, two := r.informer(&corev1.ConfigMap{}), r.informer(&corev1.ConfigMap{})
		r.synced()
		synctest.Wait()
		one.Close()
		one.Close()
		if n := r.server.Watches(); n != 1 {
			t.Fatalf("%d watches while one hold is left, want 1", n)
		}
		two.Close()
		synctest.Wait()
		if n := r.server.Watches(); n != 0 {
			t.Fatalf("%d watches after the last hold was closed, want none", n)
		}
		r.informer(&corev1.ConfigMap{})
		r.synced()
	})
}

func TestStopIsIdempotentAndEndsReads(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.cache.Stop()
		r.cache.Stop()
		if err := r.cache.Start(context.Background()); err == nil {
			t.Fatal("a stopped cache starts again")
		}
		if _, err := r.cache.Informer(&corev1.ConfigMap{}); err == nil {
			t.Fatal("a stopped cache hands out informers")
		}
	})
}

func TestEndOfTheContextStopsTheCache(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		h := &slowHandler{gate: make(chan struct{})}
		close(h.gate)
		r.informer(&corev1.ConfigMap{}).AddEventHandler(h, cache.EventHandlerOptions{})
		ctx, cancel := context.WithCancel(context.Background())
		if err := r.cache.Start(ctx); err != nil {
			t.Fatal(err)
		}
		r.synced()
		cancel()
		synctest.Wait()
		if n := r.server.Watches(); n != 0 {
			t.Fatalf("%d watches after the end of the context", n)
		}
		if _, err := r.cache.Informer(&corev1.ConfigMap{}); !errors.Is(err, cache.ErrStopped) {
			t.Fatalf("after the end of the context: %v, want %v", err, cache.ErrStopped)
		}
	})
}

func TestWatchListGivesTheInitialState(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.ServeWatchList("37+")
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		var seen eventLog
		r.informer(&corev1.ConfigMap{}).AddHandler(seen.handler)
		r.start()
		r.synced()
		seen.expect(t, "added default/a v=1 initial")
		r.server.Put("configmaps", "default", "a", v("2"), nil)
		seen.expect(t, "updated default/a v=2")
		for _, request := range r.server.Requests() {
			if request == "GET /api/v1/configmaps?limit=500" {
				t.Fatal("a list was asked for")
			}
		}
	})
}

func TestRefusedWatchListBecomesAList(t *testing.T) {
	inBubble(t, cache.Options{InitialSync: cache.SyncWatchList}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
	})
}

func TestEndOfAWatchIsResumedWithoutAList(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		var seen eventLog
		inf := r.informer(&corev1.ConfigMap{})
		inf.AddHandler(seen.handler)
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		seen.expect(t, "added default/a v=1")
		r.server.Cut(io.EOF)
		r.server.Put("configmaps", "default", "a", v("2"), nil)
		seen.expect(t, "updated default/a v=2")
		if st := inf.Status(); st.Relists != 0 || st.Restarts != 1 {
			t.Fatalf("status %+v, want one restart and no relist", st)
		}
	})
}
