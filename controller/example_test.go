// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/exampletest"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// operate runs an operator on a new control plane that serves Webs. Setup adds its
// controllers; body is called when they have nothing left to do.
func operate(setup func(m *manager.Manager) error, body func(env *steertest.Env), objects ...client.Object) {
	exampletest.Run(func(t testing.TB) {
		scheme, err := client.NewScheme(addWeb, corev1.AddToScheme, eventsv1.AddToScheme)
		check(err)
		env := steertest.New(t, steertest.Options{
			Scheme: scheme, CRDs: []string{"testdata/webs.yaml"}, Objects: objects,
			Setup: func(_ context.Context, m *manager.Manager) error { return setup(m) },
		})
		env.Settled()
		body(env)
	})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func webOf(pages ...string) *Web {
	return &Web{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Spec: WebSpec{Pages: pages}}
}

func readWeb(env *steertest.Env) *Web {
	var w Web
	check(env.Client.Get(env.Context(), client.ObjectKey{Namespace: "default", Name: "shop"}, &w))
	return &w
}

// pageNames lists the ConfigMaps with the label page.
func pageNames(env *steertest.Env) (names []string) {
	var list corev1.ConfigMapList
	check(env.Client.List(env.Context(), &list, client.HasLabels{"page"}))
	for _, page := range list.Items {
		names = append(names, page.Name)
	}
	return names
}

func page(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"page": name}}}
}

// publisher reconciles Webs: it declares a ConfigMap for every page.
type publisher struct {
	pages controller.Children[*corev1.ConfigMap]
}

func (r *publisher) Reconcile(ctx context.Context, w *Web) (controller.Result, error) {
	var desired []*corev1.ConfigMap
	for _, name := range w.Spec.Pages {
		desired = append(desired, page(name))
	}
	if err := r.pages.Apply(ctx, w, desired); err != nil {
		return controller.Result{}, err
	}
	w.Status.Ready = len(desired) // the controller writes the status
	controller.SetReady(w, &w.Status.Conditions, "Published", "all pages are there")
	return controller.Done(), nil
}

// The kind is inferred from the parameter of Reconcile; everything else is an option.
func ExampleAdd() {
	operate(func(m *manager.Manager) error {
		return controller.Add(m, &publisher{},
			controller.Owns[*corev1.ConfigMap](),
			controller.Where(controller.GenerationChanged[*Web]),
			controller.Concurrency(4))
	}, func(env *steertest.Env) {
		fmt.Println(pageNames(env), readWeb(env).Status.Ready)
	}, webOf("index", "terms"))
	// Output: [index terms] 2
}

// Children that are not desired any more are deleted; those that were deleted or
// changed by others come back.
func ExampleChildren() {
	operate(func(m *manager.Manager) error {
		return controller.Add(m, &publisher{}, controller.Owns[*corev1.ConfigMap]())
	}, func(env *steertest.Env) {
		fmt.Println(pageNames(env))

		check(env.Client.Delete(env.Context(), page("index")))
		env.Settled()
		fmt.Println(pageNames(env))

		w := readWeb(env)
		w.Spec.Pages = []string{"terms"}
		check(env.Client.Update(env.Context(), w))
		env.Settled()
		fmt.Println(pageNames(env))
	}, webOf("index", "terms"))
	// Output:
	// [index terms]
	// [index terms]
	// [terms]
}

// A password is generated in every attempt, and kept as it was created: after Apply
// the desired object is the one that exists.
func ExampleChildPolicy() {
	passwords := controller.Children[*corev1.ConfigMap]{Policy: controller.CreateOnly} // a Secret, in earnest
	n, used := 0, map[string]bool{}
	reconcile := controller.Func[*Web](func(ctx context.Context, w *Web) (controller.Result, error) {
		n++
		password := page("password")
		password.Data = map[string]string{"password": fmt.Sprint("generated-", n)} // rand.Text()
		err := passwords.Apply(ctx, w, []*corev1.ConfigMap{password})
		used[password.Data["password"]] = true
		return controller.Done(), err
	})
	operate(func(m *manager.Manager) error {
		return controller.Add(m, reconcile, controller.Owns[*corev1.ConfigMap]())
	}, func(env *steertest.Env) {
		w := readWeb(env)
		w.Spec.Pages = []string{"terms"}
		check(env.Client.Update(env.Context(), w))
		env.Settled()
		fmt.Println("attempts:", n > 1, "passwords:", len(used))
	}, webOf())
	// Output: attempts: true passwords: 1
}

// A child of one step is applied when the children of the steps before are ready.
func ExampleSequence() {
	var first, second controller.Children[*corev1.ConfigMap]
	first.Name, second.Name = "first", "second"
	approved := func(c *corev1.ConfigMap) bool { return c.Data["approved"] == "yes" }
	reconcile := controller.Func[*Web](func(ctx context.Context, w *Web) (controller.Result, error) {
		_, err := controller.Sequence{
			controller.NewStep(first, []*corev1.ConfigMap{page("draft")}, approved),
			controller.NewStep(second, []*corev1.ConfigMap{page("final")}, nil),
		}.Apply(ctx, w)
		return controller.Done(), err
	})
	operate(func(m *manager.Manager) error {
		return controller.Add(m, reconcile, controller.Owns[*corev1.ConfigMap]())
	}, func(env *steertest.Env) {
		fmt.Println(pageNames(env))
		check(env.Client.Patch(env.Context(), page("draft"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"approved":"yes"}}`))))
		env.Settled()
		fmt.Println(pageNames(env))
	}, webOf())
	// Output:
	// [draft]
	// [draft final]
}

// Owns reconciles the controlling owner of a child when the child changes. Predicates
// drop events that make no difference.
func ExampleOwns() {
	runs := 0
	pages := controller.Children[*corev1.ConfigMap]{}
	reconcile := controller.Func[*Web](func(ctx context.Context, w *Web) (controller.Result, error) {
		runs++
		return controller.Done(), pages.Apply(ctx, w, []*corev1.ConfigMap{page("index")})
	})
	operate(func(m *manager.Manager) error {
		return controller.Add(m, reconcile, controller.Owns(controller.LabelsChanged[*corev1.ConfigMap]))
	}, func(env *steertest.Env) {
		before := runs
		patch := func(body string) {
			check(env.Client.Patch(env.Context(), page("index"), client.RawPatch("application/merge-patch+json", []byte(body))))
			env.Settled()
			fmt.Println("reconciled:", runs > before)
		}
		patch(`{"data":{"text":"new"}}`)
		patch(`{"metadata":{"labels":{"color":"red"}}}`)
	}, webOf())
	// Output:
	// reconciled: false
	// reconciled: true
}

// Only objects with a label are reconciled.
func ExampleSelected() {
	var seen []string
	reconcile := controller.Func[*corev1.ConfigMap](func(_ context.Context, c *corev1.ConfigMap) (controller.Result, error) {
		seen = append(seen, c.Name)
		return controller.Done(), nil
	})
	operate(func(m *manager.Manager) error {
		selector := labels.SelectorFromSet(labels.Set{"page": "index"})
		return controller.Add(m, reconcile, controller.Where(controller.Selected[*corev1.ConfigMap](selector)))
	}, func(*steertest.Env) {
		fmt.Println(seen)
	}, page("index"), page("terms"))
	// Output: [index]
}

// An object with a finalizer is deleted once the function is done with what lies outside
// of the cluster. Reconcile is not called for it any more.
func ExampleFinalizer() {
	remote := map[string]bool{}
	operate(func(m *manager.Manager) error {
		reconcile := controller.Func[*Web](func(_ context.Context, w *Web) (controller.Result, error) {
			remote[w.Name] = true // a name in a DNS zone, for example
			return controller.Done(), nil
		})
		return controller.Add(m, reconcile,
			controller.Finalizer("example.com/cleanup", func(_ context.Context, w *Web) (controller.FinalizerResult, error) {
				delete(remote, w.Name)
				return controller.Finalized(), nil
			}))
	}, func(env *steertest.Env) {
		fmt.Println(readWeb(env).Finalizers, remote)

		check(env.Client.Delete(env.Context(), webOf()))
		env.Settled()
		err := env.Client.Get(env.Context(), client.ObjectKey{Namespace: "default", Name: "shop"}, &Web{})
		fmt.Println(apierrors.IsNotFound(err), remote)
	}, webOf())
	// Output:
	// [example.com/cleanup] map[shop:true]
	// true map[]
}

// OnGone is called when a request finds no object.
func ExampleOnGone() {
	var gone []string
	operate(func(m *manager.Manager) error {
		return controller.Add(m, &publisher{}, controller.Owns[*corev1.ConfigMap](), controller.OnGone(func(_ context.Context, r controller.Request) error {
			gone = append(gone, r.String())
			return nil
		}))
	}, func(env *steertest.Env) {
		check(env.Client.Delete(env.Context(), webOf()))
		env.Settled()
		fmt.Println(gone)
	}, webOf())
	// Output: [default/shop]
}

// An object with the annotation is left alone until the annotation goes.
func ExamplePaused() {
	paused := webOf("index")
	paused.Annotations = map[string]string{"example.com/paused": "true"}
	operate(func(m *manager.Manager) error {
		return controller.Add(m, &publisher{}, controller.Owns[*corev1.ConfigMap](), controller.Paused("example.com/paused"))
	}, func(env *steertest.Env) {
		fmt.Println(pageNames(env))
		w := readWeb(env)
		w.Annotations = nil
		check(env.Client.Update(env.Context(), w))
		env.Settled()
		fmt.Println(pageNames(env))
	}, paused)
	// Output:
	// []
	// [index]
}

// An error is retried with back-off, unless it is terminal.
func ExampleTerminal() {
	failed := 0
	reconcile := controller.Func[*Web](func(context.Context, *Web) (controller.Result, error) {
		failed++
		return controller.Result{}, controller.Terminal(errors.New("the page has no title"))
	})
	operate(func(m *manager.Manager) error {
		return controller.Add(m, reconcile)
	}, func(*steertest.Env) {
		fmt.Println(failed)
	}, webOf())
	// Output: 1
}

// A result says when the object is reconciled next. Results are comparable values.
func ExampleResult() {
	fmt.Println(controller.Done())
	fmt.Println(controller.After(time.Minute))
	fmt.Println(controller.Retry())
	fmt.Println(controller.After(0) == controller.Done())
	// Output:
	// Done()
	// After(1m0s)
	// Retry()
	// false
}

// Conditions carry the generation that they are about, and the time of the last
// transition.
func ExampleSetCondition() {
	w := webOf()
	w.Generation = 3
	changed := controller.SetCondition(w, &w.Status.Conditions, metav1.Condition{
		Type: "Certified", Status: metav1.ConditionTrue, Reason: "Issued", Message: "valid for a year",
	})
	c := w.Status.Conditions[0]
	fmt.Println(changed, c.Type, c.Status, c.ObservedGeneration, !c.LastTransitionTime.IsZero())
	// Output: true Certified True 3 true
}

// Ready, Reconciling and Stalled are set together.
func ExampleSetReconciling() {
	w := webOf()
	controller.SetReconciling(w, &w.Status.Conditions, "Uploading", "1 of 2 pages")
	for _, c := range w.Status.Conditions {
		fmt.Println(c.Type, c.Status, c.Reason)
	}
	// Output:
	// Ready False Uploading
	// Reconciling True Uploading
}

// Emit makes an Event of the reconciled object.
func ExampleEmit() {
	reconcile := controller.Func[*Web](func(ctx context.Context, _ *Web) (controller.Result, error) {
		controller.Emit(ctx, controller.UserEvent{Reason: "Published", Note: "2 pages are online"})
		return controller.Done(), nil
	})
	operate(func(m *manager.Manager) error {
		return controller.Add(m, reconcile)
	}, func(env *steertest.Env) {
		list := steertest.WaitList(env, func(l *eventsv1.EventList) bool { return len(l.Items) > 0 })
		e := list.Items[0]
		fmt.Println(e.Type, e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note)
	}, webOf())
	// Output: Normal Published Web shop 2 pages are online
}

// CreateOrUpdate is for operators that do not apply.
func ExampleCreateOrUpdate() {
	operate(func(*manager.Manager) error { return nil }, func(env *steertest.Env) {
		for range 2 {
			settings := page("settings")
			operation, err := controller.CreateOrUpdate(env.Context(), env.Client, settings, func() error {
				settings.Data = map[string]string{"color": "red"}
				return nil
			})
			fmt.Println(operation, err)
		}
	})
	// Output:
	// created <nil>
	// unchanged <nil>
}
