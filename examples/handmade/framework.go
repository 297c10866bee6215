// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package handmade

import (
	"context"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/handmade/api/example/v1"
	"github.com/steer-dev/steer/manager"
)

// Operator is the same with the framework.
func Operator() steer.Operator {
	return steer.Operator{
		Name:   "handmade",
		Scheme: steer.Scheme{v1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, greeter{})
		},
	}
}

type greeter struct{}

// +kubebuilder:rbac:groups=example.com,resources=greetings,verbs=get;list;watch
// +kubebuilder:rbac:groups=example.com,resources=greetings/status,verbs=patch

// Reconcile sets the text; the controller writes the status when it changed.
func (greeter) Reconcile(_ context.Context, greeting *v1.Greeting) (controller.Result, error) {
	greeting.Status.Text = text(greeting)
	return controller.Done(), nil
}
