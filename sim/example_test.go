// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"
)

func setup(_ context.Context, m *manager.Manager) error {
	return controller.Add(m, controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
		return controller.Done(), nil
	}))
}

// A test of an operator, under everything that can go wrong at its writes.
func ExampleTest() {
	var t *testing.T // that of the test
	sim.Test(t, func(t *testing.T) {
		env := steertest.New(t, steertest.Options{Setup: setup})
		env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}})
		steertest.Expect[*corev1.Secret](env, "db")
	})
}

// An operator that leaves a cache behind on purpose.
func ExampleAccept() {
	var t *testing.T // that of the test
	sim.Test(t, func(t *testing.T) {
		env := steertest.New(t, steertest.Options{Setup: setup})
		env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}})
		env.Settled()
	}, sim.Accept("ConfigMap default/cache", "it is filled again by whom needs it"))
}
