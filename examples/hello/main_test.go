// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"
)

func TestEveryNamespaceIsWelcomedAndThenLeftAlone(t *testing.T) {
	t.Parallel()
	welcomes(t)
}

// TestEveryNamespaceIsWelcomedWhateverGoesWrong crashes the operator at every write.
func TestEveryNamespaceIsWelcomedWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	sim.Test(t, welcomes)
}

func welcomes(t *testing.T) {
	t.Helper()
	env := steertest.New(t, steertest.Options{Operator: steer.Operator{
		Name:   "hello",
		Scheme: steer.Scheme{corev1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, &greeter{}, controller.Owns[*corev1.ConfigMap]())
		},
	}})
	welcome := steertest.Wait(env, "default/welcome", func(cm *corev1.ConfigMap) bool { return cm.Data["text"] == "Hello, default" })
	if err := env.Client.Delete(env.Context(), welcome); err != nil {
		t.Fatal(err)
	}
	steertest.Wait(env, "default/welcome", func(cm *corev1.ConfigMap) bool { return cm.UID != welcome.UID })
	env.ExpectNoWrites()
}
