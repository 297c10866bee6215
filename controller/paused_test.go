// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/steer-dev/steer/controller"
)

func TestAPausedObjectIsLeftAloneUntilItIsResumed(t *testing.T) {
	t.Parallel()
	const annotation = "example.com/paused"
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		w.Status.Ready = w.Spec.Replicas
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		pause := func(value string) {
			t.Helper()
			m.update(t, "a", func(w *Web) { w.Annotations = map[string]string{annotation: value} })
			synctest.Wait()
		}
		expect := func(want int) {
			t.Helper()
			if got := m.web(t, "a").Status.Ready; got != want {
				t.Errorf("%d, want %d", got, want)
			}
		}
		m.create(t, web("a"))
		synctest.Wait()
		expect(1)
		pause("true")
		m.update(t, "a", func(w *Web) { w.Spec.Replicas = 2 })
		synctest.Wait()
		expect(1)
		pause("false")
		expect(2)
		pause("true")
		m.delete(t, m.web(t, "a"))
		synctest.Wait()
		if m.gone("a") {
			t.Fatal("a paused object was cleaned up")
		}
		pause("")
		if !m.gone("a") {
			t.Error("a resumed object was not cleaned up")
		}
	}, controller.Paused(annotation), controller.Finalizer("example.com/hold", func(context.Context, *Web) (controller.FinalizerResult, error) {
		return controller.Finalized(), nil
	}))
}
