package controller

import (
	"context"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"

	appsv1 "k8s.io/api/apps/v1"
)

// DeploymentReconciler reconciles Deployment objects.
type DeploymentReconciler struct{}

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch

// Reconcile acts on the state of a Deployment.
func (r *DeploymentReconciler) Reconcile(ctx context.Context, obj *appsv1.Deployment) (controller.Result, error) {
	return controller.Done(), nil
}

// SetupWithManager adds the controller to a manager.
func (r *DeploymentReconciler) SetupWithManager(m *manager.Manager) error {
	return controller.Add(m, r)
}
