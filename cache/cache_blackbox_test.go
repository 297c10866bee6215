// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/steertest"
)

// world is a control plane and a cache on it.
type world struct {
	t      *testing.T
	env    *steertest.Env
	live   client.Client
	cache  *cache.Cache
	client client.Client
}

func newWorld(t *testing.T, opts cache.Options) *world {
	t.Helper()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme})
	log := slog.New(slog.DiscardHandler)
	live, err := client.New(env.Config, client.Options{Scheme: scheme, FieldOwner: "test", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	opts.DetectMutation, opts.Log = true, log
	c, err := cache.New(live, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return &world{t, env, live, c, cache.NewClient(live, c)}
}

func (w *world) start() {
	w.t.Helper()
	ctx := w.env.Context()
	if err := w.cache.Start(ctx); err != nil {
		w.t.Fatal(err)
	}
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := w.cache.WaitForSync(wait); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) informer(obj client.Object) cache.Informer {
	w.t.Helper()
	inf, err := w.cache.Informer(obj)
	if err != nil {
		w.t.Fatal(err)
	}
	return inf
}

func within(t *testing.T, ch <-chan string) string {
	t.Helper()
	select {
	case s := <-ch:
		return s
	case <-time.After(30 * time.Second):
		t.Fatal("nothing has happened for 30 s")
		return ""
	}
}

func TestOwnWritesAreReadBackFromAControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cache.Options{PageSize: 3})
	w.informer(&corev1.ConfigMap{})
	ctx := w.env.Context()
	for i := range 10 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("before-", i), Namespace: "default"}}
		if err := w.live.Create(ctx, cm); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	count := func() int {
		var l corev1.ConfigMapList
		if err := w.client.List(ctx, &l, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		return len(l.Items)
	}
	had := count()
	for i := range 50 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "own-", Namespace: "default"}}
		if err := w.client.Create(ctx, cm); err != nil {
			t.Fatal(err)
		}
		key := client.ObjectKeyFromObject(cm)
		if got := count(); got != had+1 {
			t.Fatalf("round %d: %d objects after a create, want %d", i, got, had+1)
		}
		original := cm.DeepCopy()
		cm.Data = map[string]string{"round": fmt.Sprint(i)}
		if err := w.client.Patch(ctx, cm, client.MergeFrom(original, client.OptimisticLock)); err != nil {
			t.Fatal(err)
		}
		var got corev1.ConfigMap
		if err := w.client.Get(ctx, key, &got); err != nil || got.Data["round"] != fmt.Sprint(i) {
			t.Fatalf("round %d: %v, %v", i, got.Data, err)
		}
		if err := w.client.Delete(ctx, cm); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Get(ctx, key, &got); !apierrors.IsNotFound(err) {
			t.Fatalf("round %d: after the deletion: %v", i, err)
		}
	}
}

func TestHandlersOfClientGoFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cache.Options{})
	events := make(chan string, 10)
	w.informer(&corev1.ConfigMap{}).AddEventHandler(toolscache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			return err == nil && key == "default/a"
		},
		Handler: toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(any, bool) { events <- "add" },
			UpdateFunc: func(_, obj any) { events <- "update " + obj.(*corev1.ConfigMap).Data["v"] },
			DeleteFunc: func(obj any) { events <- "delete" },
		},
	}, cache.EventHandlerOptions{Tombstone: func(key string, obj any) any { return toolscache.DeletedFinalStateUnknown{Key: key, Obj: obj} }})
	w.start()
	ctx := w.env.Context()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error { return w.live.Create(ctx, cm) }, "add"},
		{func() error { cm.Data = map[string]string{"v": "1"}; return w.live.Update(ctx, cm) }, "update 1"},
		{func() error { return w.live.Delete(ctx, cm) }, "delete"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := within(t, events); got != step.want {
			t.Fatalf("got %q, want %q", got, step.want)
		}
	}
}

func TestNamespacesOfTheOptionsDoNotMatterToClusterScopedKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cache.Options{Namespaces: []string{"one", "two"}})
	inf := w.informer(&corev1.Namespace{})
	events := make(chan string, 100)
	inf.AddHandler(func(e cache.Event) {
		if e.Object.GetName() == "three" {
			events <- e.Type.String() + " " + e.Object.GetLabels()["v"]
		}
	})
	w.start()
	ctx := w.env.Context()
	if err := w.client.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{}); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "three"}}
	if err := w.client.Create(ctx, ns); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Get(ctx, client.ObjectKey{Name: "three"}, ns); err != nil {
		t.Fatal(err)
	}
	if got := within(t, events); got != "added " {
		t.Fatalf("got %q", got)
	}
	ns.Labels = map[string]string{"v": "1"}
	if err := w.live.Patch(ctx, ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"v":"1"}}}`))); err != nil {
		t.Fatal(err)
	}
	if got := within(t, events); got != "updated 1" {
		t.Fatalf("got %q", got)
	}
	if st := inf.Status(); st.State != "watching" || st.Err != nil || st.Overlay != 0 || st.ResourceVersion == "" {
		t.Fatalf("status %+v", st)
	}
	if err := w.client.Get(ctx, client.ObjectKey{Name: "three"}, ns, client.AtLeast(ns.ResourceVersion)); err != nil {
		t.Fatal(err)
	}
}

func definition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gadgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}}}},
		},
	}}
}

func TestDefinitionThatComesAndGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cache.Options{})
	gadget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	events := make(chan string, 10)
	inf := w.informer(client.NewUnstructured(gadget))
	inf.AddHandler(func(e cache.Event) { events <- e.Type.String() + " " + e.Object.GetName() })
	ctx := w.env.Context()
	if err := w.cache.Start(ctx); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := inf.WaitForSync(short); err == nil {
		t.Fatal("a kind that does not exist has synced")
	}
	if err := w.live.Create(ctx, definition()); err != nil {
		t.Fatal(err)
	}
	if err := inf.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	g := client.NewUnstructured(gadget)
	g.SetName("g")
	g.SetNamespace("default")
	if err := w.client.Create(ctx, g); err != nil {
		t.Fatal(err)
	}
	if got := within(t, events); got != "added g" {
		t.Fatalf("got %q", got)
	}
	if err := w.live.Delete(ctx, definition()); err != nil {
		t.Fatal(err)
	}
	if got := within(t, events); got != "deleted g" {
		t.Fatalf("got %q", got)
	}
}

// TestManyWritersOneCache has several goroutines write through one client while
// others read: what is read is never older than what the reader wrote.
func TestManyWritersOneCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cache.Options{})
	w.informer(&corev1.ConfigMap{})
	w.start()
	ctx := w.env.Context()
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("w", writer), Namespace: "default"}}
			if err := w.client.Create(ctx, cm); err != nil {
				t.Error(err)
				return
			}
			for i := range 50 {
				var got corev1.ConfigMap
				if err := w.client.Get(ctx, client.ObjectKeyFromObject(cm), &got); err != nil || got.ResourceVersion != cm.ResourceVersion {
					t.Errorf("writer %d round %d: read %q, wrote %q, %v", writer, i, got.ResourceVersion, cm.ResourceVersion, err)
					return
				}
				got.Data = map[string]string{"i": fmt.Sprint(i)}
				if err := w.client.Update(ctx, &got); err != nil {
					t.Error(err)
					return
				}
				cm = &got
			}
		})
	}
	wg.Wait()
}

func TestNewRefusesAClientThatCannotListAndWatch(t *testing.T) {
	t.Parallel()
	live, err := client.New(&rest.Config{Host: "http://unused.invalid"}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cache.New(live, cache.Options{}); err != nil {
		t.Errorf("a client of client.New: %v", err)
	}
	if _, err := cache.New(struct{ client.Client }{live}, cache.Options{}); err == nil || !strings.Contains(err.Error(), "pass the client that client.New returned") {
		t.Errorf("a wrapped client: %v", err)
	}
}
