// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

func (m *fake) delete(t *testing.T, obj client.Object) {
	t.Helper()
	m.forgetLog()
	if err := m.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func (m *fake) gone(name string) bool {
	return apierrors.IsNotFound(m.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, &Web{}))
}

func TestAFinalizerHoldsTheObjectUntilItIsDone(t *testing.T) {
	t.Parallel()
	results := []controller.FinalizerResult{{}, controller.FinalizeAfter(time.Minute), controller.Finalized()}
	var at []time.Duration
	var start time.Time
	cleanup := func(_ context.Context, w *Web) (controller.FinalizerResult, error) {
		at = append(at, time.Since(start))
		w.Status.Note = "cleaning"
		result := results[0]
		results = results[1:]
		return result, nil
	}
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		if w.DeletionTimestamp != nil {
			t.Error("an object that is being deleted was reconciled")
		}
		if diff := cmp.Diff([]string{"example.com/cleanup"}, w.Finalizers); diff != "" {
			t.Error(diff)
		}
		return controller.Wait(), nil
	}, func(t *testing.T, m *fake) {
		w := web("a")
		m.create(t, w)
		synctest.Wait()
		if diff := cmp.Diff([]string{"patch Web a"}, m.log()); diff != "" {
			t.Error(diff)
		}
		start = time.Now()
		m.delete(t, w)
		synctest.Wait()
		if got := m.web(t, "a").Status.Note; got != "cleaning" {
			t.Errorf("the status of the cleanup is %q", got)
		}
		m.update(t, "a", func(w *Web) { w.Labels = map[string]string{"x": "y"} })
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if !m.gone("a") {
			t.Error("the object is still there")
		}
		if diff := cmp.Diff([]time.Duration{0, 0, time.Minute}, at); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"patch Web/status a", "patch Web a"}, m.log()); diff != "" {
			t.Error(diff)
		}
	}, controller.Finalizer("example.com/cleanup", cleanup))
}

func TestAFailingCleanupKeepsTheObject(t *testing.T) {
	t.Parallel()
	n := 0
	run(t, func(context.Context, *Web) (controller.Result, error) { return controller.Wait(), nil },
		func(t *testing.T, m *fake) {
			w := web("a")
			m.create(t, w)
			synctest.Wait()
			m.delete(t, w)
			synctest.Wait()
			if m.gone("a") {
				t.Fatal("the object went before its cleanup")
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if !m.gone("a") || n != 2 {
				t.Errorf("gone: %v after %d attempts", m.gone("a"), n)
			}
		}, controller.Finalizer("example.com/cleanup", func(context.Context, *Web) (controller.FinalizerResult, error) {
			if n++; n == 1 {
				return controller.Finalized(), errors.New("the bucket is not empty")
			}
			return controller.Finalized(), nil
		}))
}

func TestSeveralFinalizersRunInOrder(t *testing.T) {
	t.Parallel()
	var order []string
	step := func(name string) controller.Option {
		return controller.Finalizer("example.com/"+name, func(_ context.Context, w *Web) (controller.FinalizerResult, error) {
			order = append(order, name)
			w.Status.Note += name
			return controller.Finalized(), nil
		})
	}
	run(t, func(context.Context, *Web) (controller.Result, error) { return controller.Wait(), nil },
		func(t *testing.T, m *fake) {
			w := web("a")
			m.create(t, w)
			synctest.Wait()
			m.delete(t, w)
			synctest.Wait()
			if diff := cmp.Diff([]string{"first", "second"}, order); diff != "" || !m.gone("a") {
				t.Error(diff, m.records())
			}
		}, step("first"), step("second"))
}

func TestFinalizersOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	run(t, func(context.Context, *Web) (controller.Result, error) { return controller.Wait(), nil },
		func(t *testing.T, m *fake) {
			w := web("a")
			w.Finalizers = []string{"example.com/theirs"}
			m.create(t, w)
			synctest.Wait()
			m.delete(t, w)
			synctest.Wait()
			if diff := cmp.Diff([]string{"example.com/theirs"}, m.web(t, "a").Finalizers); diff != "" {
				t.Error(diff)
			}
		}, controller.Finalizer("example.com/mine", func(context.Context, *Web) (controller.FinalizerResult, error) {
			return controller.Finalized(), nil
		}))
}

func TestARetiredFinalizerIsTakenOff(t *testing.T) {
	t.Parallel()
	run(t, func(context.Context, *Web) (controller.Result, error) { return controller.Wait(), nil },
		func(t *testing.T, m *fake) {
			live, going := web("live"), web("going")
			live.Finalizers, going.Finalizers = []string{"example.com/old"}, []string{"example.com/old"}
			m.create(t, live)
			synctest.Wait()
			if got := m.web(t, "live").Finalizers; len(got) != 0 {
				t.Error(got)
			}
			m.create(t, going)
			if err := m.Delete(t.Context(), going); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			synctest.Wait()
			if !m.gone("going") {
				t.Error("the retired finalizer holds the object")
			}
		}, controller.RetiredFinalizer("example.com/old"))
}

func TestAFinalizerConflictIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		failed := false
		m.intercept = func(verb client.Verb, kind string, key client.ObjectKey, sub string) error {
			if verb == client.VerbPatch && sub == "" && !failed {
				failed = true
				return conflict((&Web{}).GroupVersionKind(), key)
			}
			return nil
		}
		err := controller.Add(m, controller.Func[*Web](func(context.Context, *Web) (controller.Result, error) { return controller.Wait(), nil }),
			controller.Finalizer("example.com/cleanup", func(context.Context, *Web) (controller.FinalizerResult, error) { return controller.Finalized(), nil }))
		if err != nil {
			t.Fatal(err)
		}
		m.start(t)
		defer m.end()
		m.create(t, web("a"))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := m.outcomes(); got[0] != "conflicted" || got[1] != "done" {
			t.Error(got)
		}
	})
}
