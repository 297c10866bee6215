// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
)

func TestResyncShowsEveryObjectAgain(t *testing.T) {
	inBubble(t, cache.Options{Resync: time.Hour}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		var seen eventLog
		r.informer(&corev1.ConfigMap{}).AddHandler(seen.handler)
		r.start()
		r.synced()
		synctest.Wait()
		seen.take()
		time.Sleep(61 * time.Minute)
		seen.expect(t, "updated default/a v=1 resync")
	})
}

func TestNamespacesAreWatchedOneByOne(t *testing.T) {
	inBubble(t, cache.Options{Namespaces: []string{"one", "two"}}, func(t *testing.T, r *rig) {
		for _, ns := range []string{"one", "two", "three"} {
			r.server.Put("configmaps", ns, "a", v(ns), nil)
		}
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		synctest.Wait()
		if n := r.server.Watches(); n != 2 {
			t.Fatalf("%d watches, want 2", n)
		}
		ctx := context.Background()
		var l corev1.ConfigMapList
		if err := r.client.List(ctx, &l); err != nil || len(l.Items) != 2 {
			t.Fatalf("list of all watched namespaces: %d items, %v", len(l.Items), err)
		}
		var cm corev1.ConfigMap
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: "three", Name: "a"}, &cm); err != nil || cm.Data["v"] != "three" {
			t.Fatalf("a namespace that is not watched is read live: %v, %v", cm.Data, err)
		}
	})
}

func TestSelectorsHideWhatTheyRejectFromOwnWritesToo(t *testing.T) {
	opts := cache.Options{InitialSync: cache.SyncList, ByKind: []cache.KindOptions{{Object: &corev1.ConfigMap{}, Labels: labels.SelectorFromSet(labels.Set{"app": "x"})}}}
	inBubble(t, opts, func(t *testing.T, r *rig) {
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Hold(true)
		ctx := context.Background()
		in := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "in", Namespace: "default", Labels: map[string]string{"app": "x"}}}
		out := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "out", Namespace: "default"}}
		for _, cm := range []*corev1.ConfigMap{in, out} {
			if err := r.client.Create(ctx, cm); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.client.Get(ctx, key("in"), &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Get(ctx, key("out"), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Fatalf("what the selector rejects: %v, want NotFound", err)
		}
		in.Labels = nil
		if err := r.client.Update(ctx, in); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Get(ctx, key("in"), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Fatalf("what no longer matches: %v, want NotFound", err)
		}
		selectors := 0
		for _, request := range r.server.Requests() {
			if strings.Contains(request, "labelSelector=app%3Dx") {
				selectors++
			}
		}
		if selectors != 2 {
			t.Fatalf("%d requests with the selector, want list and watch: %v", selectors, r.server.Requests())
		}
	})
}

func TestTransformRunsOnWatchedAndOwnObjects(t *testing.T) {
	opts := cache.Options{Transform: func(obj client.Object) (client.Object, error) {
		if cm, ok := obj.(*corev1.ConfigMap); ok {
			delete(cm.Data, "secret")
		}
		return obj, nil
	}}
	inBubble(t, opts, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", map[string]string{"secret": "1", "v": "1"}, nil)
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		r.server.Hold(true)
		ctx := context.Background()
		own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}, Data: map[string]string{"secret": "1", "v": "1"}}
		if err := r.client.Create(ctx, own); err != nil {
			t.Fatal(err)
		}
		if own.Data["secret"] != "1" {
			t.Fatal("the transform has changed the caller's object")
		}
		for _, name := range []string{"a", "b"} {
			var cm corev1.ConfigMap
			if err := r.client.Get(ctx, key(name), &cm); err != nil || cm.Data["secret"] != "" || cm.Data["v"] != "1" {
				t.Fatalf("%s: %v, %v", name, cm.Data, err)
			}
		}
	})
}

func TestFailingTransformIsReported(t *testing.T) {
	opts := cache.Options{Transform: func(client.Object) (client.Object, error) { return nil, errors.New("no way") }}
	inBubble(t, opts, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		inf := r.informer(&corev1.ConfigMap{})
		r.start()
		time.Sleep(time.Second)
		if st := inf.Status(); st.Synced || st.Err == nil || !strings.Contains(st.Err.Error(), "transform default/a: no way") {
			t.Fatalf("status %+v", st)
		}
	})
}

func TestManagedFieldsAreKeptOnDemand(t *testing.T) {
	inBubble(t, cache.Options{KeepManagedFields: true}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		r.informer(&corev1.ConfigMap{})
		r.start()
		var cm corev1.ConfigMap
		if err := r.client.Get(context.Background(), key("a"), &cm); err != nil || len(cm.ManagedFields) == 0 {
			t.Fatalf("%v, %v", cm.ManagedFields, err)
		}
	})
}

func TestOwnDeletionIsSeenWhateverItsShape(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Hold(true)
		ctx := context.Background()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", Finalizers: []string{"example.com/f"}}}
		if err := r.client.Create(ctx, cm); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Delete(ctx, cm); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Get(ctx, key("a"), cm); err != nil || cm.DeletionTimestamp == nil {
			t.Fatalf("with a finalizer it is there, and being deleted: %v, %v", cm.DeletionTimestamp, err)
		}
		cm.Finalizers = nil
		if err := r.client.Update(ctx, cm); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Get(ctx, key("a"), cm); !apierrors.IsNotFound(err) {
			t.Fatalf("after the last finalizer: %v, want NotFound", err)
		}
		var l corev1.ConfigMapList
		if err := r.client.List(ctx, &l); err != nil || len(l.Items) != 0 {
			t.Fatalf("after the last finalizer: %d items, %v", len(l.Items), err)
		}
	})
}

func TestLostAnswerOfAWriteMakesReadsLive(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		inf := r.informer(&corev1.ConfigMap{})
		r.start()
		ctx := context.Background()
		var cm corev1.ConfigMap
		if err := r.client.Get(ctx, key("a"), &cm); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.server.Hold(true)
		r.server.LoseAnswers(true)
		cm.Data = v("2")
		if err := r.client.Update(ctx, &cm); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("update: %v", err)
		}
		r.server.LoseAnswers(false)
		for range 2 {
			var got corev1.ConfigMap
			if err := r.client.Get(ctx, key("a"), &got); err != nil || got.Data["v"] != "2" {
				t.Fatalf("got %v, %v: the write has happened", got.Data, err)
			}
		}
		var l corev1.ConfigMapList
		if err := r.client.List(ctx, &l); err != nil || l.Items[0].Data["v"] != "2" {
			t.Fatalf("list: %v, %v", l.Items, err)
		}
		r.server.Hold(false)
		synctest.Wait()
		if st := inf.Status(); st.Overlay != 0 {
			t.Fatalf("status %+v", st)
		}
	})
}

func TestListerIteratesWithoutCopies(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		r.server.Put("configmaps", "default", "b", v("2"), nil)
		lister, err := cache.NewLister[*corev1.ConfigMap](r.cache)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if _, err := lister.All(ctx); err == nil || !strings.Contains(err.Error(), "else m.Cache().Informer(&v1.ConfigMap{})") {
			t.Fatalf("undeclared: %v", err)
		}
		r.informer(&corev1.ConfigMap{})
		r.start()
		first := func() *corev1.ConfigMap {
			all, err := lister.All(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for cm := range all {
				return cm
			}
			return nil
		}
		if a, b := first(), first(); a != b {
			t.Fatal("the iterator copies")
		}
		own, err := lister.List(ctx)
		if err != nil || len(own) != 2 || own[0] == first() {
			t.Fatalf("list: %v, %v", own, err)
		}
		if one, err := lister.Get(ctx, key("b")); err != nil || one.Data["v"] != "2" {
			t.Fatalf("get: %v, %v", one, err)
		}
	})
}

func TestChangedSharedObjectIsDetected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cache.Options{})
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		r.informer(&corev1.ConfigMap{}).AddHandler(func(e cache.Event) {
			e.Object.(*corev1.ConfigMap).Data["v"] = "changed"
		})
		r.start()
		r.synced()
		synctest.Wait()
		defer func() {
			if p := recover(); p == nil || !strings.Contains(p.(string), "DeepCopy") {
				t.Fatalf("recovered %v, want a panic that says what to do", p)
			}
		}()
		r.cache.Stop()
	})
}

func TestReadsTellTheirOrigin(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Hold(true)
		var got []client.Call
		ctx := client.WithObserver(context.Background(), func(_ context.Context, call *client.Call) { got = append(got, *call) })
		var cm corev1.ConfigMap
		_ = r.client.Get(ctx, key("a"), &cm)
		cm.Data = v("2")
		_ = r.client.Update(ctx, &cm)
		_ = r.client.Get(ctx, key("a"), &cm)
		_ = r.client.Get(ctx, key("a"), &cm, client.Live)
		_ = r.client.List(ctx, &corev1.ConfigMapList{})
		want := []struct {
			verb   client.Verb
			origin client.Origin
		}{{"get", client.OriginCache}, {"update", client.OriginServer}, {"get", client.OriginOverlay}, {"get", client.OriginServer}, {"list", client.OriginOverlay}}
		if len(got) != len(want) {
			t.Fatalf("%d calls observed, want %d: %+v", len(got), len(want), got)
		}
		for i, w := range want {
			if got[i].Verb != w.verb || got[i].Origin != w.origin || got[i].ResourceVersion == "" {
				t.Errorf("call %d: %+v, want %+v", i, got[i], w)
			}
		}
	})
}

func TestReadWithABoundIsLiveUntilTheWatchIsThere(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Hold(true)
		rv := r.server.Put("configmaps", "default", "a", v("2"), nil)
		ctx := context.Background()
		var cm corev1.ConfigMap
		if err := r.client.Get(ctx, key("a"), &cm); err != nil || cm.Data["v"] != "1" {
			t.Fatalf("without a bound: %v, %v", cm.Data, err)
		}
		if err := r.client.Get(ctx, key("a"), &cm, client.AtLeast(rv)); err != nil || cm.Data["v"] != "2" {
			t.Fatalf("with a bound: %v, %v", cm.Data, err)
		}
	})
}

// countingMetrics remembers what it is told.
type countingMetrics struct {
	mu       sync.Mutex
	kinds    map[cache.MetricKind]bool
	revision uint64
	events   int
	live     int
}

func (m *countingMetrics) note(kind cache.MetricKind, fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kinds == nil {
		m.kinds = map[cache.MetricKind]bool{}
	}
	m.kinds[kind] = true
	fn()
}

func (m *countingMetrics) QueuedItems(kind cache.MetricKind, n int) { m.note(kind, func() {}) }
func (m *countingMetrics) StoreResourceVersion(kind cache.MetricKind, revision uint64) {
	m.note(kind, func() { m.revision = revision })
}
func (m *countingMetrics) Processed(kind cache.MetricKind, events int, _ time.Duration) {
	m.note(kind, func() { m.events += events })
}
func (m *countingMetrics) UndeclaredRead(kind cache.MetricKind) { m.note(kind, func() { m.live++ }) }

func (m *countingMetrics) ConsistentRead(client.Verb, time.Duration, error) {}

func TestMetricsSayWhatInformersDo(t *testing.T) {
	var m countingMetrics
	inBubble(t, cache.Options{Metrics: &m}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		r.server.Put("configmaps", "default", "b", v("1"), nil)
		r.start()
		_ = r.client.Get(context.Background(), key("a"), &corev1.ConfigMap{})
		r.informer(&corev1.ConfigMap{})
		r.synced()
		r.server.Put("configmaps", "default", "a", v("2"), nil)
		synctest.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.live != 1 || m.events != 3 || m.revision != r.server.Revision() || !m.kinds[cache.MetricKind{Version: "v1", Resource: "configmaps"}] {
			t.Fatalf("got %+v", &m)
		}
	})
}

func TestObjectsAreFoundByTheirOwner(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		ctx := context.Background()
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: "default"}}
		if err := r.client.Create(ctx, owner); err != nil {
			t.Fatal(err)
		}
		owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", Namespace: "default", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
		}}}
		if err := r.client.Create(ctx, owned); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"as an own write", "as the watch delivers it"} {
			var l corev1.ConfigMapList
			if err := r.client.List(ctx, &l, cache.OwnedBy(owner)); err != nil || len(l.Items) != 1 || l.Items[0].Name != "owned" {
				t.Fatalf("%s: %d items, %v", when, len(l.Items), err)
			}
			synctest.Wait()
		}
	})
}
