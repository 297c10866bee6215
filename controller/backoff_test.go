// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// failing is a reconciler that notes when it is called, writes what says, and
// fails.
func failing(at *[]time.Duration, say func(n int) string) controller.Func[*Web] {
	var start time.Time
	return func(_ context.Context, w *Web) (controller.Result, error) {
		if start.IsZero() {
			start = time.Now()
		}
		*at = append(*at, time.Since(start))
		if len(*at) > 50 {
			return controller.Wait(), nil // a loop without a back-off
		}
		err := errors.New(say(len(*at)))
		controller.SetReconciling(w, &w.Status.Conditions, "Failed", err.Error())
		return controller.Result{}, err
	}
}

// attempts is failing with a new text each time.
func attempts(at *[]time.Duration) controller.Func[*Web] {
	return failing(at, func(n int) string { return fmt.Sprint("attempt ", n) })
}

func TestAStatusWrittenOnFailureLeavesTheBackoffAlone(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(int) string{
		"a new text each time": func(n int) string { return fmt.Sprint("attempt ", n) },
		"always the same text": func(int) string { return "no connection" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var at []time.Duration
			run(t, failing(&at, say), func(t *testing.T, m *fake) {
				m.create(t, web("a"))
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if diff := cmp.Diff([]time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond}, at); diff != "" {
					t.Error(diff)
				}
				// What another client changes counts at once.
				m.update(t, "a", func(w *Web) { w.Spec.Replicas = 7 })
				synctest.Wait()
				if len(at) != 4 || at[3] != 3*time.Second {
					t.Errorf("a change of the spec was answered at %v", at)
				}
			}, controller.RateLimit(500*time.Millisecond, time.Minute))
		})
	}
}

func TestWritesOfFinalizersAndInventoriesLeaveTheBackoffAlone(t *testing.T) {
	t.Parallel()
	var set controller.Children[*corev1.ConfigMap]
	attempts := 0
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		if attempts++; attempts > 50 {
			return controller.Wait(), nil
		}
		name := fmt.Sprint("child-", attempts) // the inventory changes each time
		if err := set.Apply(ctx, w, []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: name}}}); err != nil {
			return controller.Result{}, err
		}
		return controller.Result{}, errors.New("the other side is down")
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if attempts != 3 {
			t.Errorf("%d attempts, not 3", attempts)
		}
	}, controller.RateLimit(500*time.Millisecond, time.Minute),
		controller.Finalizer("example.com/hold", func(context.Context, *Web) (controller.FinalizerResult, error) { return controller.Finalized(), nil }))
}

func TestAStatusWhoseAnswerIsLostLeavesTheBackoffAlone(t *testing.T) {
	t.Parallel()
	var at []time.Duration
	runOn(t, func(_ *testing.T, m *fake) {
		m.lose = func(verb client.Verb, sub string) bool { return verb == client.VerbPatch && sub == "status" }
	}, attempts(&at), func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond}, at); diff != "" {
			t.Error(diff)
		}
	}, controller.RateLimit(500*time.Millisecond, time.Minute))
}

func TestAForeignChangeDuringAWriteOfTheStatusCountsAtOnce(t *testing.T) {
	t.Parallel()
	var at []time.Duration
	runOn(t, func(t *testing.T, m *fake) {
		changed := false
		m.intercept = func(verb client.Verb, _ string, _ client.ObjectKey, sub string) error {
			if verb == client.VerbPatch && sub == "status" && !changed {
				changed = true
				m.update(t, "a", func(w *Web) { w.Spec.Replicas = 7 })
			}
			return nil
		}
	}, attempts(&at), func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(400 * time.Millisecond)
		synctest.Wait()
		if diff := cmp.Diff([]time.Duration{0, 0}, at); diff != "" {
			t.Error(diff)
		}
	}, controller.RateLimit(500*time.Millisecond, time.Minute))
}

func TestAResultThatComesBackLaterIsNotSettledByTheOwnStatus(t *testing.T) {
	t.Parallel()
	attempts := 0
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		if attempts++; attempts > 50 {
			return controller.Wait(), nil
		}
		w.Status.Note = time.Now().String()
		return controller.After(time.Hour), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(3*time.Hour + time.Minute)
		synctest.Wait()
		if attempts != 4 {
			t.Errorf("%d attempts in three hours, not 4", attempts)
		}
	})
}
