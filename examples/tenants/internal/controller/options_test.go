// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"

	platformv1 "github.com/steer-dev/steer/examples/tenants/api/v1"
	platformv1alpha1 "github.com/steer-dev/steer/examples/tenants/api/v1alpha1"
	webhookv1 "github.com/steer-dev/steer/examples/tenants/internal/webhook/v1"
)

// options are a control plane with the whole operator, its webhooks, and simulated Pods. The
// manifests of config/extras are in force by themselves.
func options() steertest.Options {
	return steertest.Options{
		CRDs:      []string{"config/crd/bases"},
		Webhooks:  []string{"config/webhook"},
		Workloads: steertest.Workloads(),
		Operator: steer.Operator{
			Name: "tenants",
			Scheme: steer.Scheme{
				platformv1alpha1.AddToScheme, platformv1.AddToScheme,
				appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme,
			},
			Setup: func(_ context.Context, m *manager.Manager) error {
				return errors.Join(
					(&TenantReconciler{}).SetupWithManager(m),
					(&DatabaseReconciler{}).SetupWithManager(m),
					webhookv1.SetupTenantWebhookWithManager(m),
					webhookv1.SetupDatabaseWebhookWithManager(m),
				)
			},
		},
	}
}
