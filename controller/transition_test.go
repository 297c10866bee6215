// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controller"
)

func TestChangesOfTheConditionsAreToldOnceEach(t *testing.T) {
	t.Parallel()
	type set func(w *Web)
	up := func(w *Web) { controller.SetReady(w, &w.Status.Conditions, "Up", "all is well") }
	rolling := func(w *Web) { controller.SetReconciling(w, &w.Status.Conditions, "RollingOut", "1 of 3") }
	stalled := func(reason string) set {
		return func(w *Web) { controller.SetStalled(w, &w.Status.Conditions, reason, "no such page") }
	}
	lost := func(w *Web) {
		controller.SetCondition(w, &w.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Lost"})
	}
	for name, test := range map[string]struct {
		steps []set
		want  []string
	}{
		"born with a bad spec":            {[]set{stalled("BadSpec"), stalled("BadSpec")}, []string{"Warning BadSpec no such page"}},
		"stalls while it becomes ready":   {[]set{rolling, stalled("BadSpec")}, []string{"Warning BadSpec no such page"}},
		"stalls for another reason":       {[]set{stalled("BadSpec"), stalled("NoQuota")}, []string{"Warning BadSpec no such page", "Warning NoQuota no such page"}},
		"becomes ready and is rolled out": {[]set{rolling, up, rolling, rolling, up}, []string{"Normal Up all is well", "Normal RollingOut 1 of 3", "Normal Up all is well"}},
		"is mended":                       {[]set{stalled("BadSpec"), rolling, up}, []string{"Warning BadSpec no such page", "Normal RollingOut 1 of 3", "Normal Up all is well"}},
		"is not ready, and that is all":   {[]set{lost, up, lost}, []string{"Normal Up all is well", "Warning Lost "}},
	} {
		for _, silent := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var options []controller.Option
				want := test.want
				if silent {
					options, want = append(options, controller.NoConditionEvents()), nil
				}
				run(t, func(_ context.Context, w *Web) (controller.Result, error) {
					test.steps[w.Spec.Replicas](w)
					return controller.Done(), nil
				}, func(t *testing.T, m *fake) {
					w := web("a")
					w.Spec.Replicas = 0
					m.create(t, w)
					synctest.Wait()
					for i := range test.steps[1:] {
						m.update(t, "a", func(w *Web) { w.Spec.Replicas = i + 1 })
						synctest.Wait()
					}
					if diff := cmp.Diff(want, m.events.all); diff != "" {
						t.Error(diff)
					}
				}, options...)
			})
		}
	}
}
