package v1

import (
	"context"
	"errors"

	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"

	corev1 "k8s.io/api/core/v1"
)

// SetupPodWebhookWithManager adds the webhooks of Pod to a manager.
func SetupPodWebhookWithManager(m *manager.Manager) error {
	return errors.Join(
		webhook.AddDefaulter(m, &PodDefaulter{}),
	)
}

// PodDefaulter completes Pod objects before they are stored.
type PodDefaulter struct{}

// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=fail,sideEffects=None,groups="",resources=pods,verbs=create;update,versions=v1,name=mpod-v1.kb.io,admissionReviewVersions=v1

// Default sets fields that are not set. It is called again on what it made, and leaves
// that as it is.
func (d *PodDefaulter) Default(ctx context.Context, obj *corev1.Pod) error {
	return nil
}
