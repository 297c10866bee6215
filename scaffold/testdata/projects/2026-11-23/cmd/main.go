// Command guestbook is the operator: it runs the controllers of internal/controller.
package main

import (
	"context"
	"errors"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/manager"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	webappv1 "example.com/guestbook/api/v1"
	"example.com/guestbook/internal/controller"
	webhookv1 "example.com/guestbook/internal/webhook/v1"
)

func main() {
	steer.Main(steer.Operator{
		Name: "guestbook",
		Scheme: steer.Scheme{
			webappv1.AddToScheme,
			appsv1.AddToScheme,
			corev1.AddToScheme,
		},
		Setup: func(_ context.Context, m *manager.Manager) error {
			return errors.Join(
				(&controller.GuestbookReconciler{}).SetupWithManager(m),
				webhookv1.SetupGuestbookWebhookWithManager(m),
				(&controller.DeploymentReconciler{}).SetupWithManager(m),
				webhookv1.SetupPodWebhookWithManager(m),
			)
		},
	})
}
