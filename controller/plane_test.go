// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/trace"
)

// These tests run against a real control plane and a real cache.

func planeScheme() *runtime.Scheme {
	scheme, err := client.NewScheme(addWeb, corev1.AddToScheme)
	if err != nil {
		panic(err)
	}
	return scheme
}

func newPlane(t *testing.T) *steertest.Env {
	t.Helper()
	return steertest.New(t, steertest.Options{Scheme: planeScheme(), CRDs: []string{"testdata/webs.yaml"}})
}

func TestOnAControlPlaneChildrenStatusAndFinalizersWork(t *testing.T) {
	t.Parallel()
	var set controller.Children[*corev1.ConfigMap]
	cleaned := make(chan string, 1)
	env := newPlane(t)
	start(t, env, func(m controller.Manager) error {
		return controller.Add(m, pages(set), controller.Owns[*corev1.ConfigMap](),
			controller.Finalizer("example.com/cleanup", func(ctx context.Context, w *Web) (controller.FinalizerResult, error) {
				select {
				case cleaned <- w.Name:
				default: // called again until the children are gone
				}
				return set.Delete(ctx, w)
			}))
	})
	w := withPages("one", "two", "three")
	create(t, env, w)
	settled := func(want int) *Web {
		return steertest.Wait(env, "default/a", func(w *Web) bool {
			return w.Status.Ready == want && w.Status.ObservedGeneration == w.Generation
		})
	}
	w = settled(3)
	if diff := cmp.Diff([]string{"example.com/cleanup"}, w.Finalizers); diff != "" {
		t.Error(diff)
	}
	list := steertest.WaitList(env, func(l *corev1.ConfigMapList) bool { return len(l.Items) == 3 }, client.InNamespace("default"))
	for _, c := range list.Items {
		if !metav1.IsControlledBy(&c, w) {
			t.Errorf("%s has owners %v", c.Name, c.OwnerReferences)
		}
	}

	// Mended when changed, made again when deleted.
	one := &list.Items[slices.IndexFunc(list.Items, func(c corev1.ConfigMap) bool { return c.Name == "one" })]
	one.Data["page"] = "vandalised"
	if err := env.Client.Update(env.Context(), one); err != nil {
		t.Fatal(err)
	}
	steertest.Wait(env, "default/one", func(c *corev1.ConfigMap) bool { return c.Data["page"] == "one" })
	if err := env.Client.Delete(env.Context(), one); err != nil {
		t.Fatal(err)
	}
	uid := one.UID
	steertest.Wait(env, "default/one", func(c *corev1.ConfigMap) bool { return c.UID != uid })

	// Pruned when not desired any more.
	w = settled(3)
	w.Spec.Pages = []string{"two"}
	if err := env.Client.Update(env.Context(), w); err != nil {
		t.Fatal(err)
	}
	settled(1)
	steertest.WaitGone[*corev1.ConfigMap](env, "default/one")
	steertest.WaitGone[*corev1.ConfigMap](env, "default/three")

	// Cleaned up when deleted.
	if err := env.Client.Delete(env.Context(), w); err != nil {
		t.Fatal(err)
	}
	steertest.WaitGone[*Web](env, "default/a")
	if name := <-cleaned; name != "a" {
		t.Error(name)
	}
	steertest.WaitGone[*corev1.ConfigMap](env, "default/two")
}

// TestKilledAndRestartedUnderLoadItConverges starts an operator again and again
// while users change what they want, and demands the last wish in the end.
func TestKilledAndRestartedUnderLoadItConverges(t *testing.T) {
	t.Parallel()
	env := newPlane(t)
	const objects, rounds = 8, 5
	names := []string{"p", "q", "r", "s"}
	for i := range objects {
		w := web(fmt.Sprint("web-", i))
		create(t, env, w)
	}
	reconcile := func(set controller.Children[*corev1.ConfigMap]) controller.Func[*Web] {
		return func(ctx context.Context, w *Web) (controller.Result, error) {
			var desired []*corev1.ConfigMap
			for _, page := range w.Spec.Pages {
				desired = append(desired, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: w.Name + "-" + page}})
			}
			w.Status.Ready = len(desired)
			return controller.Done(), set.Apply(ctx, w, desired)
		}
	}
	wish := func(round, i int) []string { return names[:(round*3+i)%(len(names)+1)] }
	for round := range rounds {
		kill := start(t, env, func(m controller.Manager) error {
			return controller.Add(m, reconcile(controller.Children[*corev1.ConfigMap]{}), controller.Owns[*corev1.ConfigMap](), controller.Concurrency(4))
		})
		for i := range objects {
			var w Web
			if err := env.Client.Get(env.Context(), steertest.Key(fmt.Sprint("default/web-", i)), &w); err != nil {
				t.Fatal(err)
			}
			before := w.DeepCopyObject().(*Web)
			w.Spec.Pages = slices.Clone(wish(round, i))
			if err := env.Client.Patch(env.Context(), &w, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}
		if round < rounds-1 {
			steertest.Wait(env, "default/web-0", func(w *Web) bool { return w.Status.ObservedGeneration == w.Generation })
			kill()
			continue
		}
		var want []string
		for i := range objects {
			for _, page := range wish(round, i) {
				want = append(want, fmt.Sprintf("web-%d-%s", i, page))
			}
			steertest.Wait(env, fmt.Sprint("default/web-", i), func(w *Web) bool {
				return w.Status.ObservedGeneration == w.Generation && w.Status.Ready == len(wish(round, i))
			})
		}
		list, err := await.List(env.Context(), env.Client, func(l *corev1.ConfigMapList) bool { return len(l.Items) == len(want) }, client.InNamespace("default"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range list.Items {
			got = append(got, c.Name)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFieldsOfLegacyManagersAreTakenOver(t *testing.T) {
	t.Parallel()
	set := controller.Children[*corev1.ConfigMap]{Legacy: []string{"old-operator"}}
	env := newPlane(t)
	old := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"},
		Data:       map[string]string{"page": "one", "left-over": "of a former version"},
	}
	if err := env.Client.Create(env.Context(), old, client.FieldOwner("old-operator")); err != nil {
		t.Fatal(err)
	}
	create(t, env, withPages("one"))
	start(t, env, func(m controller.Manager) error {
		return controller.Add(m, pages(set), controller.Owns[*corev1.ConfigMap]())
	})
	steertest.Wait(env, "default/one", func(c *corev1.ConfigMap) bool {
		_, leftOver := c.Data["left-over"]
		return c.Data["page"] == "one" && !leftOver && len(c.OwnerReferences) == 1
	})
}

func TestASetMayMixKindsAndForms(t *testing.T) {
	t.Parallel()
	env := newPlane(t)
	var set controller.Children[client.Object]
	start(t, env, func(m controller.Manager) error {
		secret := func() client.Object {
			u := client.NewUnstructured(corev1.SchemeGroupVersion.WithKind("Secret"))
			u.SetName("login")
			u.Object["stringData"] = map[string]any{"user": "web"}
			return u
		}
		typed := func(w *Web) client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
		}
		source, err := controller.Kind(m.Deps().Informers, secret(), controller.Map(func(context.Context, client.Object) []controller.Request {
			return nil
		}))
		if err != nil {
			return err
		}
		return controller.Add(m, controller.Func[*Web](func(ctx context.Context, w *Web) (controller.Result, error) {
			desired := []client.Object{secret(), typed(w)}
			w.Status.Ready = len(desired[:max(2-w.Spec.Replicas, 0)])
			return controller.Done(), set.Apply(ctx, w, desired[:w.Status.Ready])
		}), controller.Owns[*corev1.ConfigMap](), controller.From(source))
	})
	w := web("a")
	w.Spec.Replicas = 0
	create(t, env, w)
	steertest.Wait(env, "default/login", func(s *corev1.Secret) bool { return string(s.Data["user"]) == "web" && len(s.OwnerReferences) == 1 })
	steertest.Wait(env, "default/a", func(c *corev1.ConfigMap) bool { return true })
	w = steertest.Wait(env, "default/a", func(w *Web) bool { return w.Status.ObservedGeneration == 1 })
	w.Spec.Replicas = 2
	if err := env.Client.Update(env.Context(), w); err != nil {
		t.Fatal(err)
	}
	steertest.WaitGone[*corev1.Secret](env, "default/login")
	steertest.WaitGone[*corev1.ConfigMap](env, "default/a")
}

func TestAKindThatAppearsLaterIsReconciled(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: planeScheme()})
	var set controller.Children[*corev1.ConfigMap]
	start(t, env, func(m controller.Manager) error {
		return controller.Add(m, pages(set), controller.Owns[*corev1.ConfigMap]())
	})
	env.Apply("testdata/webs.yaml")
	create(t, env, withPages("one"))
	steertest.Wait(env, "default/one", func(c *corev1.ConfigMap) bool { return len(c.OwnerReferences) == 1 })
}

func TestAnotherClusterIsASource(t *testing.T) {
	t.Parallel()
	here := newPlane(t)
	there := steertest.New(t, steertest.Options{Scheme: planeScheme()})
	remote, err := client.New(there.Config, client.Options{Scheme: planeScheme()})
	if err != nil {
		t.Fatal(err)
	}
	copies, err := cache.New(remote, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := copies.Start(here.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(copies.Stop)
	start(t, here, func(m controller.Manager) error {
		named := controller.Map(func(_ context.Context, c *corev1.ConfigMap) []controller.Request {
			return []controller.Request{controller.RequestFor(c)}
		})
		source, err := controller.Kind(copies, &corev1.ConfigMap{}, named)
		if err != nil {
			return err
		}
		return controller.Add(m, controller.Func[*Web](func(ctx context.Context, w *Web) (controller.Result, error) {
			list := &corev1.ConfigMapList{}
			err := copies.List(ctx, list, client.InNamespace("default"))
			w.Status.Ready = len(list.Items)
			return controller.Done(), err
		}), controller.From(source))
	})
	create(t, here, web("a"))
	there.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	steertest.Wait(here, "default/a", func(w *Web) bool { return w.Status.Ready == 1 })
}

// create creates an object as a user does, who leaves the status to the operator.
func create(t *testing.T, env *steertest.Env, obj client.Object) {
	t.Helper()
	if err := env.Client.Create(env.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// host is a controller.Manager: a client, a cache, and what was added.
type host struct {
	deps  controller.Deps
	parts []controller.Runnable
}

func (h *host) Deps() controller.Deps { return h.deps }

func (h *host) Add(r controller.Runnable) error {
	h.parts = append(h.parts, r)
	return nil
}

// start runs an operator until it is killed, or until the end of the test.
func start(t *testing.T, env *steertest.Env, setup func(m controller.Manager) error) (kill func()) {
	t.Helper()
	return startWith(t, env, interceptor.Funcs{}, setup)
}

// startWith is start with functions in front of the operator's calls.
func startWith(t *testing.T, env *steertest.Env, calls interceptor.Funcs, setup func(m controller.Manager) error) (kill func()) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	live, err := client.New(env.Config, client.Options{Scheme: planeScheme(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	copies, err := cache.New(live, cache.Options{Undeclared: cache.UndeclaredError, DetectMutation: true, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{deps: controller.Deps{
		Client: interceptor.New(cache.NewClient(live, copies), calls), Informers: copies, Trace: trace.NewRecorder(trace.Options{}), Log: quiet,
	}}
	if err := setup(h); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(env.Context())
	if err := copies.Start(ctx); err != nil {
		t.Fatal(err)
	}
	var parts sync.WaitGroup
	for _, part := range h.parts {
		parts.Go(func() {
			if err := part.Start(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	kill = func() {
		cancel()
		parts.Wait()
		copies.Stop()
	}
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			for r := range h.deps.Trace.Records() {
				t.Log(r)
			}
		}
	})
	return kill
}
