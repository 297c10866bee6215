package v1

import (
	"context"
	"errors"

	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"

	webappv1 "example.com/guestbook/api/v1"
)

// SetupGuestbookWebhookWithManager adds the webhooks of Guestbook to a manager.
func SetupGuestbookWebhookWithManager(m *manager.Manager) error {
	return errors.Join(
		webhook.AddDefaulter(m, &GuestbookDefaulter{}),
		webhook.AddValidator(m, &GuestbookValidator{}),
	)
}

// GuestbookDefaulter completes Guestbook objects before they are stored.
type GuestbookDefaulter struct{}

// +kubebuilder:webhook:path=/mutate-webapp-example-com-v1-guestbook,mutating=true,failurePolicy=fail,sideEffects=None,groups=webapp.example.com,resources=guestbooks,verbs=create;update,versions=v1,name=mguestbook-v1.kb.io,admissionReviewVersions=v1

// Default sets fields that are not set. It is called again on what it made, and leaves
// that as it is.
func (d *GuestbookDefaulter) Default(ctx context.Context, obj *webappv1.Guestbook) error {
	return nil
}

// GuestbookValidator admits Guestbook objects or denies them with an error.
type GuestbookValidator struct{}

// +kubebuilder:webhook:path=/validate-webapp-example-com-v1-guestbook,mutating=false,failurePolicy=fail,sideEffects=None,groups=webapp.example.com,resources=guestbooks,verbs=create;update,versions=v1,name=vguestbook-v1.kb.io,admissionReviewVersions=v1

// ValidateCreate is called for new objects.
func (v *GuestbookValidator) ValidateCreate(ctx context.Context, obj *webappv1.Guestbook) (webhook.Warnings, error) {
	return nil, nil
}

// ValidateUpdate is called for changes.
func (v *GuestbookValidator) ValidateUpdate(ctx context.Context, oldObj, newObj *webappv1.Guestbook) (webhook.Warnings, error) {
	return nil, nil
}

// ValidateDelete is called for deletions once the marker has the verb delete.
func (v *GuestbookValidator) ValidateDelete(ctx context.Context, obj *webappv1.Guestbook) (webhook.Warnings, error) {
	return nil, nil
}
