package controller

import (
	"context"
	"testing"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"

	appsv1 "k8s.io/api/apps/v1"
)

func TestDeploymentReconcilerWritesNothingWithoutNeed(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{
		Operator: steer.Operator{
			Name:   "guestbook",
			Scheme: steer.Scheme{appsv1.AddToScheme},
			Setup: func(_ context.Context, m *manager.Manager) error {
				return (&DeploymentReconciler{}).SetupWithManager(m)
			},
		},
	})
	env.ExpectNoWrites()
}
