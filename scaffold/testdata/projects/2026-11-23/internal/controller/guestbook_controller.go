package controller

import (
	"context"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"

	webappv1 "example.com/guestbook/api/v1"
)

// GuestbookReconciler reconciles Guestbook objects.
type GuestbookReconciler struct{}

// +kubebuilder:rbac:groups=webapp.example.com,resources=guestbooks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=webapp.example.com,resources=guestbooks/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings the cluster to what the spec of a Guestbook says. The status is
// written when it returns.
func (r *GuestbookReconciler) Reconcile(ctx context.Context, obj *webappv1.Guestbook) (controller.Result, error) {
	controller.SetReady(obj, &obj.Status.Conditions, "Reconciled", "the cluster is as the spec says")
	return controller.Done(), nil
}

// SetupWithManager adds the controller to a manager.
func (r *GuestbookReconciler) SetupWithManager(m *manager.Manager) error {
	return controller.Add(m, r)
}
