// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controller"
)

// TestFailureConditionsTellWhyReconcileFailed has a reconciler end in one way after another:
// each case begins with what the one before has left.
func TestFailureConditionsTellWhyReconcileFailed(t *testing.T) {
	t.Parallel()
	type ending func(w *Web) error
	ready := func(w *Web) error {
		controller.SetReady(w, &w.Status.Conditions, "Fine", "")
		return nil
	}
	fails := func(text string) ending { return func(*Web) error { return errors.New(text) } }
	steps := []struct {
		end  ending
		want []string
	}{
		{ready, []string{"Ready=True Fine: "}},
		{fails("no route"), []string{"Ready=False ReconcileFailed: no route", "Reconciling=True ReconcileFailed: no route"}},
		{func(*Web) error { return controller.Terminal(errors.New("no such page")) }, []string{"Ready=False ReconcileFailed: no such page", "Stalled=True ReconcileFailed: no such page"}},
		{fails("no route"), []string{"Ready=False ReconcileFailed: no route", "Reconciling=True ReconcileFailed: no route"}},
		{func(*Web) error { return nil }, nil},
		{func(w *Web) error {
			controller.SetReconciling(w, &w.Status.Conditions, "Rolling", "1 of 2")
			return errors.New("no route")
		}, []string{"Ready=False Rolling: 1 of 2", "Reconciling=True ReconcileFailed: no route"}},
		{func(w *Web) error {
			controller.SetStalled(w, &w.Status.Conditions, "InvalidPage", "page 7")
			return controller.Terminal(errors.New("page 7"))
		}, []string{"Ready=False InvalidPage: page 7", "Stalled=True InvalidPage: page 7"}},
		{ready, []string{"Ready=True Fine: "}},
	}
	at := 0
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		return controller.Done(), steps[at].end(w)
	}, func(t *testing.T, m *fake) {
		for i, step := range steps {
			if at = i; i == 0 {
				m.create(t, web("a"))
			} else {
				m.update(t, "a", func(w *Web) { w.Spec.Replicas = 10 + i })
			}
			synctest.Wait()
			writes := len(m.log())
			m.update(t, "a", func(w *Web) { w.Labels = map[string]string{"again": fmt.Sprint(i)} })
			synctest.Wait()
			if again := m.log()[writes:]; len(again) > 0 {
				t.Errorf("step %d: an equal attempt wrote %v", i, again)
			}
			var got []string
			for _, c := range m.web(t, "a").Status.Conditions {
				got = append(got, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("step %d (-want +got):\n%s", i, diff)
			}
		}
	}, controller.FailureConditions(), controller.MaxRetries(1))
}

func TestFailureConditionsNeedAFieldForThem(t *testing.T) {
	t.Parallel()
	err := controller.Add(newFake(), controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
		return controller.Done(), nil
	}), controller.FailureConditions())
	if err == nil || !strings.Contains(err.Error(), "needs a field Status.Conditions of type []metav1.Condition, which *v1.ConfigMap does not have") {
		t.Error(err)
	}
}
