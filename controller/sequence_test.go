// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// inOrder are three steps of one ConfigMap each, which are ready when they say so.
func inOrder() controller.Sequence {
	step := func(name string) controller.Step {
		set := controller.Children[*corev1.ConfigMap]{Name: name}
		desired := []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/slow"}}}}
		return controller.NewStep(set, desired, func(c *corev1.ConfigMap) bool { return c.Data["ready"] == "yes" })
	}
	return controller.Sequence{step("one"), step("two"), step("three")}
}

func TestStepsWaitForThoseBeforeAndAreDeletedInReverse(t *testing.T) {
	t.Parallel()
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		progress, err := inOrder().Apply(ctx, w)
		w.Status.Ready, w.Status.Note = progress.Ready, progress.Waiting
		return progress.Result(), err
	}, func(t *testing.T, m *fake) {
		child := func(name string, change func(*corev1.ConfigMap)) {
			t.Helper()
			var c corev1.ConfigMap
			if err := m.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &c); err != nil {
				t.Fatal(err)
			}
			change(&c)
			if err := m.Update(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second) // deletions are checked every two
			synctest.Wait()
		}
		expect := func(ready int, waiting string, children ...string) {
			t.Helper()
			w := m.web(t, "a")
			if w.Status.Ready != ready || w.Status.Note != waiting {
				t.Errorf("%d steps are ready, waiting for %q", w.Status.Ready, w.Status.Note)
			}
			if diff := cmp.Diff(children, m.configMaps(t)); diff != "" {
				t.Error(diff)
			}
		}
		isReady := func(c *corev1.ConfigMap) { c.Data = map[string]string{"ready": "yes"} }
		goes := func(c *corev1.ConfigMap) { c.Finalizers = nil }
		m.create(t, web("a"))
		synctest.Wait()
		expect(0, "ConfigMap one", "one")
		child("one", isReady)
		expect(1, "ConfigMap two", "one", "two")
		child("two", isReady)
		child("three", isReady)
		expect(3, "", "one", "three", "two")
		// A step that ceases to be ready leaves those after it alone.
		child("two", func(c *corev1.ConfigMap) { c.Data = nil })
		expect(1, "ConfigMap two", "one", "three", "two")

		m.delete(t, m.web(t, "a"))
		synctest.Wait()
		deleting := func() (names []string) {
			for _, name := range m.configMaps(t) {
				var c corev1.ConfigMap
				if err := m.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &c); err != nil {
					t.Fatal(err)
				}
				if c.DeletionTimestamp != nil {
					names = append(names, name)
				}
			}
			return names
		}
		for _, name := range []string{"three", "two", "one"} {
			if diff := cmp.Diff([]string{name}, deleting()); diff != "" {
				t.Error(diff)
			}
			child(name, goes)
		}
		if !m.gone("a") {
			t.Error("the owner is still there")
		}
	}, controller.Owns[*corev1.ConfigMap](), controller.Finalizer("example.com/order", func(ctx context.Context, w *Web) (controller.FinalizerResult, error) {
		return inOrder().Delete(ctx, w)
	}))
}
