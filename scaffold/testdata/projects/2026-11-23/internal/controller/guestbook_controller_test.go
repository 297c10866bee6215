package controller

import (
	"context"
	"testing"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"

	webappv1 "example.com/guestbook/api/v1"
	webhookv1 "example.com/guestbook/internal/webhook/v1"
)

func TestGuestbookReconcilerMakesTheSampleReady(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{
		CRDs: []string{"config/crd/bases"},
		Operator: steer.Operator{
			Name:   "guestbook",
			Scheme: steer.Scheme{webappv1.AddToScheme},
			Setup: func(_ context.Context, m *manager.Manager) error {
				if err := webhookv1.SetupGuestbookWebhookWithManager(m); err != nil {
					return err
				}
				return (&GuestbookReconciler{}).SetupWithManager(m)
			},
		},
		Webhooks: []string{"config/webhook"},
	})
	env.Apply("config/samples/v1_guestbook.yaml")
	steertest.Expect[*webappv1.Guestbook](env, "guestbook-sample", steertest.Ready)
	env.ExpectNoWrites()
}
