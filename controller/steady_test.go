// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/steertest"
)

// ledger notes the writes of an operator, and who was reconciled.
type ledger struct {
	mu     sync.Mutex
	writes []string
	turns  chan string
}

func newLedger() *ledger { return &ledger{turns: make(chan string, 1<<16)} }

func (l *ledger) calls() interceptor.Funcs {
	return interceptor.Each(func(_ context.Context, call client.Call, do func() error) error {
		if call.Verb.Writes() {
			l.mu.Lock()
			l.writes = append(l.writes, fmt.Sprint(call.Verb, " ", call.GVK.Kind, " ", call.Key.Name))
			l.mu.Unlock()
		}
		return do()
	})
}

func (l *ledger) written() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.writes)
}

// wait waits until n objects have been reconciled.
func (l *ledger) wait(t *testing.T, env *steertest.Env, n int) {
	t.Helper()
	for seen := map[string]bool{}; len(seen) < n; {
		select {
		case name := <-l.turns:
			seen[name] = true
		case <-env.Context().Done():
			t.Fatalf("%d of %d objects were reconciled", len(seen), n)
		}
	}
}

// settings reconciles a ConfigMap and a Secret for every Web, with everything that
// a server does not keep as it was sent.
func settings(l *ledger) func(m controller.Manager) error {
	var set controller.Children[client.Object]
	return func(m controller.Manager) error {
		return controller.Add(m, controller.Func[*Web](func(ctx context.Context, w *Web) (controller.Result, error) {
			err := set.Apply(ctx, w, []client.Object{
				&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: w.Name, Annotations: map[string]string{}, Labels: map[string]string{}},
					Data:       map[string]string{}, BinaryData: map[string][]byte{},
				},
				&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: w.Name},
					StringData: map[string]string{"user": w.Name}, Data: map[string][]byte{"more": []byte("x")},
				},
			})
			w.Status.Ready = 2
			if err == nil {
				l.turns <- w.Name
			}
			return controller.Done(), err
		}), controller.Owns[*corev1.ConfigMap](), controller.Owns[*corev1.Secret](), controller.Concurrency(4),
			controller.Finalizer("example.com/hold", func(context.Context, *Web) (controller.FinalizerResult, error) { return controller.Finalized(), nil }))
	}
}

func TestASteadyStateIsSentNothingAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	const objects = 100
	env := newPlane(t)
	first := newLedger()
	kill := startWith(t, env, first.calls(), settings(first))
	for i := range objects {
		create(t, env, web(fmt.Sprint("web-", i)))
	}
	first.wait(t, env, objects)
	for i := range objects {
		steertest.Wait(env, fmt.Sprint("default/web-", i), func(w *Web) bool { return w.Status.ObservedGeneration == 1 })
	}
	for len(first.turns) > 0 {
		<-first.turns
	}
	before := len(first.written())
	for i := range objects { // a change that asks for nothing
		w := &Web{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", i)}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`))
		if err := env.Client.Patch(env.Context(), w, patch); err != nil {
			t.Fatal(err)
		}
	}
	first.wait(t, env, objects)
	if more := first.written()[before:]; len(more) > 0 {
		t.Errorf("%d writes without a change, such as %s", len(more), more[0])
	}
	kill()

	second := newLedger()
	startWith(t, env, second.calls(), settings(second))
	second.wait(t, env, objects)
	if got := second.written(); len(got) > 0 {
		t.Errorf("%d writes after a restart, such as %s", len(got), got[0])
	}
}

func TestAChildThatTheServerKeepsOtherwiseIsMendedAfterARestart(t *testing.T) {
	t.Parallel()
	env := newPlane(t)
	first := newLedger()
	kill := startWith(t, env, first.calls(), settings(first))
	create(t, env, web("a"))
	steertest.Wait(env, "default/a", func(w *Web) bool { return w.Status.ObservedGeneration == 1 })
	kill()
	secret := steertest.Wait(env, "default/a", func(*corev1.Secret) bool { return true })
	secret.Data["user"] = []byte("another user")
	if err := env.Client.Update(env.Context(), secret); err != nil {
		t.Fatal(err)
	}
	second := newLedger()
	startWith(t, env, second.calls(), settings(second))
	steertest.Wait(env, "default/a", func(s *corev1.Secret) bool { return string(s.Data["user"]) == "a" })
	second.wait(t, env, 1)
	if diff := cmp.Diff([]string{"apply Secret a"}, second.written()); diff != "" {
		t.Error(diff)
	}
}

// dropInventory takes the annotations away, as kubectl replace does.
func dropInventory(t *testing.T, env *steertest.Env, change func(*Web)) {
	t.Helper()
	w := steertest.Wait(env, "default/a", func(w *Web) bool { return w.Status.ObservedGeneration == w.Generation })
	w.Annotations = nil
	change(w)
	if err := env.Client.Update(env.Context(), w); err != nil {
		t.Fatal(err)
	}
}

func TestALostInventoryIsFoundAgain(t *testing.T) {
	t.Parallel()
	env := newPlane(t)
	main := controller.Children[*corev1.ConfigMap]{}
	other := controller.Children[*corev1.ConfigMap]{Name: "other"}
	start(t, env, func(m controller.Manager) error {
		apply := pages(main)
		return controller.Add(m, controller.Func[*Web](func(ctx context.Context, w *Web) (controller.Result, error) {
			result, err := apply(ctx, w)
			return result, errors.Join(err, other.Apply(ctx, w, []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "of-another-set"}}}))
		}), controller.Owns[*corev1.ConfigMap]())
	})
	create(t, env, withPages("one", "two"))
	kept := steertest.Wait(env, "default/of-another-set", func(*corev1.ConfigMap) bool { return true })
	dropInventory(t, env, func(w *Web) { w.Spec.Pages = []string{"two"} })
	steertest.WaitGone[*corev1.ConfigMap](env, "default/one")
	w := steertest.Wait(env, "default/a", func(w *Web) bool { return w.Status.ObservedGeneration == 2 })
	if got := w.Annotations[annotation]; got != `["/v1/ConfigMap/default/two"]` {
		t.Errorf("inventory %s", got)
	}
	still := steertest.Wait(env, "default/of-another-set", func(*corev1.ConfigMap) bool { return true })
	if still.UID != kept.UID || w.Annotations[controller.InventoryAnnotation+"web.other"] == "" {
		t.Errorf("the other set was touched: %v", w.Annotations)
	}
}

// TestAnOlderInventoryIsCompleted brings an inventory back as kubectl replace does
// with a file from before, while the operator runs and while it does not.
func TestAnOlderInventoryIsCompleted(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"while it runs": false, "while it is away": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newPlane(t)
			run := func() func() {
				return start(t, env, func(m controller.Manager) error {
					return controller.Add(m, pages(controller.Children[*corev1.ConfigMap]{}), controller.Owns[*corev1.ConfigMap]())
				})
			}
			kill := run()
			create(t, env, withPages("one"))
			older := steertest.Wait(env, "default/a", func(w *Web) bool { return w.Status.ObservedGeneration == 1 }).Annotations
			w := steertest.Wait(env, "default/a", func(*Web) bool { return true })
			w.Spec.Pages = []string{"one", "two"}
			if err := env.Client.Update(env.Context(), w); err != nil {
				t.Fatal(err)
			}
			w = steertest.Wait(env, "default/a", func(w *Web) bool { return w.Status.ObservedGeneration == 2 })
			if away {
				kill()
			}
			w.Annotations, w.Spec.Pages = older, []string{"one"}
			if err := env.Client.Update(env.Context(), w); err != nil {
				t.Fatal(err)
			}
			if away {
				run()
			}
			steertest.WaitGone[*corev1.ConfigMap](env, "default/two")
			w = steertest.Wait(env, "default/a", func(w *Web) bool { return w.Status.ObservedGeneration == 3 })
			if got := w.Annotations[annotation]; got != `["/v1/ConfigMap/default/one"]` {
				t.Errorf("inventory %s", got)
			}
		})
	}
}

func TestChildrenOfLegacyManagersAreFoundByTheirOwner(t *testing.T) {
	t.Parallel()
	env := newPlane(t)
	w := withPages("two")
	create(t, env, w)
	yes := true
	for name, manager := range map[string]string{"old": "old-operator", "theirs": "other-client"} {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "example.com/v1", Kind: "Web", Name: "a", UID: w.UID, Controller: &yes},
		}}}
		if err := env.Client.Create(env.Context(), child, client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
	}
	start(t, env, func(m controller.Manager) error {
		return controller.Add(m, pages(controller.Children[*corev1.ConfigMap]{Legacy: []string{"old-operator"}}), controller.Owns[*corev1.ConfigMap]())
	})
	steertest.WaitGone[*corev1.ConfigMap](env, "default/old")
	steertest.Wait(env, "default/a", func(w *Web) bool { return w.Status.ObservedGeneration == 1 })
	steertest.Wait(env, "default/theirs", func(*corev1.ConfigMap) bool { return true })
}

func TestARenamedSetKeepsItsChildren(t *testing.T) {
	t.Parallel()
	env := newPlane(t)
	run := func(name string, set controller.Children[*corev1.ConfigMap]) func() {
		return start(t, env, func(m controller.Manager) error {
			return controller.Add(m, pages(set), controller.Owns[*corev1.ConfigMap](), controller.Name(name))
		})
	}
	kill := run("web", controller.Children[*corev1.ConfigMap]{})
	create(t, env, withPages("one", "two"))
	steertest.Wait(env, "default/a", func(w *Web) bool { return w.Status.ObservedGeneration == 1 })
	kill()

	kill = run("web", controller.Children[*corev1.ConfigMap]{Name: "pages", Formerly: []string{"configmap"}})
	w := steertest.Wait(env, "default/a", func(w *Web) bool { return w.Annotations[controller.InventoryAnnotation+"web.pages"] != "" })
	if _, ok := w.Annotations[annotation]; ok {
		t.Errorf("the former inventory is still there: %v", w.Annotations)
	}
	kill()

	run("site", controller.Children[*corev1.ConfigMap]{Formerly: []string{"web.configmap", "web.pages"}, Legacy: []string{"web"}})
	steertest.Wait(env, "default/two", func(c *corev1.ConfigMap) bool {
		return strings.HasPrefix(c.Annotations[controller.AppliedAnnotation], "site.configmap/")
	})
	w = steertest.Wait(env, "default/a", func(w *Web) bool { return w.Annotations[controller.InventoryAnnotation+"site.configmap"] != "" })
	w.Spec.Pages = []string{"two"}
	if err := env.Client.Update(env.Context(), w); err != nil {
		t.Fatal(err)
	}
	steertest.WaitGone[*corev1.ConfigMap](env, "default/one")
}

func TestErrorsOfChildrenNameTheirObjects(t *testing.T) {
	t.Parallel()
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		err := controller.Children[*corev1.ConfigMap]{}.Apply(ctx, w, []*corev1.ConfigMap{
			{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, {ObjectMeta: metav1.ObjectMeta{Name: "two"}},
		})
		var names []string
		for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
			var child *controller.ChildError
			if errors.As(e, &child) {
				names = append(names, child.Kind.Kind+" "+child.Key.String())
			}
		}
		if diff := cmp.Diff([]string{"ConfigMap default/one", "ConfigMap default/two"}, names); diff != "" {
			t.Error(diff)
		}
		return controller.Wait(), nil
	}, func(t *testing.T, m *fake) {
		m.intercept = func(verb client.Verb, _ string, _ client.ObjectKey, _ string) error {
			if verb == client.VerbApply {
				return errors.New("quota exceeded")
			}
			return nil
		}
		m.create(t, web("a"))
		synctest.Wait()
	})
}
