// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

func TestTheStatusIsWrittenAlsoWhenReconcileFails(t *testing.T) {
	t.Parallel()
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		w.Status.Note = "half way"
		return controller.Done(), errors.New("stuck")
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		synctest.Wait()
		if got := m.web(t, "a").Status; got.Note != "half way" || got.ObservedGeneration != 0 {
			t.Errorf("%+v: the note belongs there, an observed generation does not", got)
		}
	})
}

func TestATerminalErrorIsAVerdictOnTheGeneration(t *testing.T) {
	t.Parallel()
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		controller.SetStalled(w, &w.Status.Conditions, "Wrong", "no such page")
		return controller.Result{}, controller.Terminal(errors.New("wrong"))
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		synctest.Wait()
		if got := m.web(t, "a").Status; got.ObservedGeneration != 1 || len(got.Conditions) != 2 {
			t.Errorf("%+v", got)
		}
	})
}

func TestOnlyAFinishedAttemptObservesTheGeneration(t *testing.T) {
	t.Parallel()
	for result, want := range map[controller.Result]int64{
		controller.Done(): 1, controller.After(time.Hour): 1, {}: 1, controller.Wait(): 0, controller.Retry(): 0,
		controller.WaitUntil(time.Unix(1<<40, 0)): 0,
	} {
		t.Run(result.String(), func(t *testing.T) {
			t.Parallel()
			run(t, func(context.Context, *Web) (controller.Result, error) { return result, nil },
				func(t *testing.T, m *fake) {
					m.create(t, web("a"))
					synctest.Wait()
					if got := m.web(t, "a").Status.ObservedGeneration; got != want {
						t.Errorf("observed %d, want %d", got, want)
					}
				})
		})
	}
}

func TestAnUnchangedStatusIsNotWritten(t *testing.T) {
	t.Parallel()
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		w.Status.Ready = 1
		controller.SetReady(w, &w.Status.Conditions, "Fine", "")
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		synctest.Wait()
		m.update(t, "a", func(w *Web) { w.Labels = map[string]string{"x": "y"} })
		synctest.Wait()
		if diff := cmp.Diff([]string{"patch Web/status a"}, m.log()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAStatusConflictIsReadAgainAndMerged(t *testing.T) {
	t.Parallel()
	n := 0
	var m *fake
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		if n++; n > 1 {
			return controller.Wait(), nil
		}
		// Meanwhile a user changes the spec and another owner the status.
		m.update(t, "a", func(w *Web) { w.Spec.Replicas = 9 })
		other := m.web(t, "a")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"ready":5,"conditions":[{"type":"Theirs","status":"True"},{"type":"Gone","status":"True"}]}}`))
		if err := m.Status().Patch(context.Background(), other, patch); err != nil {
			return controller.Wait(), err
		}
		w.Status.Note = "mine"
		controller.SetCondition(w, &w.Status.Conditions, metav1.Condition{Type: "Mine", Status: metav1.ConditionTrue, Reason: "Fine"})
		return controller.Done(), nil
	}, func(t *testing.T, running *fake) {
		m = running
		m.create(t, web("a"))
		synctest.Wait()
		got := m.web(t, "a")
		var conditions []string
		for _, c := range got.Status.Conditions {
			conditions = append(conditions, c.Type)
		}
		if diff := cmp.Diff([]string{"Theirs", "Gone", "Mine"}, conditions); diff != "" {
			t.Error(diff)
		}
		if got.Status.Ready != 5 || got.Status.Note != "mine" || got.Spec.Replicas != 9 {
			t.Errorf("%+v %+v", got.Spec, got.Status)
		}
		if got.Status.ObservedGeneration != 1 {
			t.Errorf("generation %d was observed, not the one that was reconciled", got.Status.ObservedGeneration)
		}
		if m.outcomes()[0] != "done" {
			t.Error(m.outcomes())
		}
	})
}

func TestChangingMoreThanTheStatusIsAnErrorThatNamesTheField(t *testing.T) {
	t.Parallel()
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		w.Spec.Replicas = 7
		w.Labels = map[string]string{"x": "y"}
		w.Status.Note = "kept"
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		synctest.Wait()
		r := m.records()[0]
		if r.Outcome.String() != "failed" || !strings.HasPrefix(r.Error, "metadata.labels[x],spec.replicas of Web default/a was changed in place") {
			t.Errorf("%s %s", r.Outcome, r.Error)
		}
		if got := m.web(t, "a"); got.Spec.Replicas != 1 || got.Status.Note != "kept" {
			t.Errorf("%+v", got)
		}
	})
}

func TestWritingTheObjectWithTheClientIsNoChangeInPlace(t *testing.T) {
	t.Parallel()
	var m *fake
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		if w.Spec.Replicas == 1 {
			w.Spec.Replicas = 2
			if err := m.Update(ctx, w); err != nil {
				return controller.Wait(), err
			}
		}
		w.Status.Ready = w.Spec.Replicas
		return controller.Done(), nil
	}, func(t *testing.T, running *fake) {
		m = running
		m.create(t, web("a"))
		synctest.Wait()
		if got := m.web(t, "a"); got.Status.Ready != 2 || got.Status.ObservedGeneration != 2 {
			t.Errorf("%+v %v", got.Status, m.records())
		}
		if diff := cmp.Diff([]string{"update Web a", "patch Web/status a"}, m.log()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAKindWithoutStatusSubresourceIsWrittenWithOneWarning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		m.noStatus["Web"] = true
		err := controller.Add(m, controller.Func[*Web](func(_ context.Context, w *Web) (controller.Result, error) {
			w.Status.Ready = w.Spec.Replicas
			return controller.Done(), nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		m.start(t)
		defer m.end()
		m.create(t, web("a"), web("b"))
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			if got := m.web(t, name).Status.Ready; got != 1 {
				t.Errorf("%s: ready %d", name, got)
			}
		}
		n := 0
		for _, line := range m.lines.all() {
			if strings.Contains(line, "no status subresource") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d warnings, not 1", n)
		}
	})
}

func TestReadyTransitionsAreEventsForUsers(t *testing.T) {
	t.Parallel()
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		switch w.Spec.Replicas {
		case 1, 3:
			controller.SetReady(w, &w.Status.Conditions, "Up", "all is well")
		case 2:
			controller.SetStalled(w, &w.Status.Conditions, "Down", "no such page")
		}
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		for n := range 3 {
			synctest.Wait()
			m.update(t, "a", func(w *Web) { w.Spec.Replicas = n + 1 })
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"Normal Up all is well", "Warning Down no such page", "Normal Up all is well"}, m.events.all); diff != "" {
			t.Error(diff)
		}
		conditions := m.web(t, "a").Status.Conditions
		if len(conditions) != 1 || conditions[0].ObservedGeneration != 3 {
			t.Errorf("%+v", conditions)
		}
	})
}

func TestUnstructuredObjectsAreReconciledByKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"}
		err := controller.Add(m, controller.Func[*unstructured.Unstructured](func(_ context.Context, u *unstructured.Unstructured) (controller.Result, error) {
			return controller.Done(), unstructured.SetNestedField(u.Object, "seen", "status", "note")
		}), controller.OfKind(gvk))
		if err != nil {
			t.Fatal(err)
		}
		m.start(t)
		defer m.end()
		m.create(t, web("a"))
		synctest.Wait()
		if got := m.web(t, "a").Status.Note; got != "seen" {
			t.Errorf("%q %v", got, m.records())
		}
	})
}
