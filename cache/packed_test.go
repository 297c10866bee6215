// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
)

// TestACompactCacheAnswersLikeAnyOther asks a compact cache and another one the
// same, and compares everything.
func TestACompactCacheAnswersLikeAnyOther(t *testing.T) {
	t.Parallel()
	answers := func(t *testing.T, compact bool) (out []string) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, cache.Options{Compact: compact})
			defer r.cache.Stop()
			uids := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`) // each control plane makes its own
			note := func(what string, v any) {
				out = append(out, uids.ReplaceAllString(fmt.Sprintf("%s %+v", what, v), "UID"))
			}
			check := func(err error) {
				if err != nil {
					t.Fatal(err)
				}
			}
			ctx := context.Background()
			check(r.cache.IndexField(&corev1.ConfigMap{}, "data.v", func(obj client.Object) []string {
				return []string{obj.(*corev1.ConfigMap).Data["v"]}
			}))
			r.server.Put("configmaps", "default", "a", v("1"), map[string]string{"app": "x"})
			r.server.Put("configmaps", "default", "b", v("2"), nil)
			untyped := &unstructured.Unstructured{}
			untyped.SetAPIVersion("v1")
			untyped.SetKind("ConfigMap")
			events := make([][]cache.Event, 2) // by informer: each calls its handler on its own
			for i, obj := range []client.Object{&corev1.ConfigMap{}, untyped} {
				r.informer(obj).AddHandler(func(e cache.Event) { events[i] = append(events[i], e) })
			}
			r.start()
			r.synced()
			if compact {
				for _, obj := range r.cache.Held() {
					if got := fmt.Sprintf("%T", obj); got != "*form.packed" {
						t.Errorf("%s is not held encoded", got)
					}
				}
			}
			r.server.Put("configmaps", "default", "a", v("3"), map[string]string{"app": "x"})
			r.server.Delete("configmaps", "default", "b")
			synctest.Wait()
			for _, informer := range events {
				for _, e := range informer {
					note(fmt.Sprintf("%s %T", e.Type, e.Object), e.Object)
					note("was", e.Old)
				}
			}
			for _, obj := range []client.Object{&corev1.ConfigMap{}, untyped.DeepCopy(), &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}} {
				check(r.cache.Get(ctx, key("a"), obj))
				note("get", obj)
			}
			for _, opts := range [][]client.ListOption{
				nil, {client.MatchingLabels{"app": "x"}}, {client.MatchingFields{"data.v": "3"}}, {client.MatchingFields{"data.v": "1"}},
			} {
				var list corev1.ConfigMapList
				check(r.cache.List(ctx, &list, opts...))
				note("list", list)
			}
			lister, err := cache.NewLister[*corev1.ConfigMap](r.cache)
			check(err)
			all, err := lister.All(ctx)
			check(err)
			for obj := range all {
				note("all", obj)
			}
			if err := r.cache.Get(ctx, key("a"), &corev1.Secret{}); err == nil {
				t.Error("a Secret was read out of ConfigMaps")
			}
			// Own writes show before the watch delivers them, and merge with it.
			r.server.Hold(true)
			own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}, Data: v("4")}
			check(r.client.Create(ctx, own))
			var list corev1.ConfigMapList
			check(r.client.List(ctx, &list))
			note("with own", len(list.Items))
			r.server.Hold(false)
		})
		return out
	}
	if diff := cmp.Diff(answers(t, false), answers(t, true)); diff != "" {
		t.Errorf("-as it is +compact:\n%s", diff)
	}
}

// heapOf is the live heap that a cache of Pods takes, in bytes.
func heapOf(t *testing.T, objects int, compact bool) float64 {
	t.Helper()
	k := form.NewPacking(form.Place{GVK: corev1.SchemeGroupVersion.WithKind("Pod")}, func() client.Object { return &corev1.Pod{} })
	live := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := live()
	kept := make([]client.Object, objects)
	for i := range kept {
		pod := benchPod(i, "1")
		data, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		obj := &corev1.Pod{}
		if err := obj.Unmarshal(data); err != nil { // as the watch delivers it
			t.Fatal(err)
		}
		batch := []store.Delta{{Op: store.Put, Object: obj}}
		if compact {
			k.PackAll(batch)
			form.Settle(batch)
		}
		kept[i] = batch[0].Object
	}
	took := live() - before
	runtime.KeepAlive(kept)
	return took
}

// TestACompactCacheTakesHalfTheMemory is not parallel: it measures the heap.
func TestACompactCacheTakesHalfTheMemory(t *testing.T) {
	const objects = 2000
	as, compact := heapOf(t, objects, false), heapOf(t, objects, true)
	t.Logf("a Pod takes %.0f bytes as it is, %.0f compact: %.2f", as/objects, compact/objects, compact/as)
	if compact > as/2 {
		t.Errorf("a compact cache takes %.2f of the memory", compact/as)
	}
}
