// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"

	platformv1 "github.com/steer-dev/steer/examples/tenants/api/v1"
)

// SetupTenantWebhookWithManager adds the webhooks of Tenant to a manager.
func SetupTenantWebhookWithManager(m *manager.Manager) error {
	return errors.Join(
		webhook.AddDefaulter(m, &TenantDefaulter{}),
		webhook.AddValidator(m, &TenantValidator{}),
		webhook.AddConversion(m, &platformv1.Tenant{}),
	)
}

// TenantDefaulter completes Tenant objects before they are stored.
type TenantDefaulter struct{}

// +kubebuilder:webhook:path=/mutate-platform-example-com-v1-tenant,mutating=true,failurePolicy=fail,sideEffects=None,groups=platform.example.com,resources=tenants,verbs=create;update,versions=v1,name=mtenant-v1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// Default sets fields that are not set. It is called again on what it made, and leaves
// that as it is.
func (d *TenantDefaulter) Default(_ context.Context, obj *platformv1.Tenant) error {
	obj.Spec.Plan = cmp.Or(obj.Spec.Plan, platformv1.Small)
	if obj.Spec.MaxDatabases == 0 {
		obj.Spec.MaxDatabases = 2
		if obj.Spec.Plan == platformv1.Large {
			obj.Spec.MaxDatabases = 10
		}
	}
	return nil
}

// TenantValidator admits Tenant objects or denies them with an error.
type TenantValidator struct{}

// +kubebuilder:webhook:path=/validate-platform-example-com-v1-tenant,mutating=false,failurePolicy=fail,sideEffects=None,groups=platform.example.com,resources=tenants,verbs=create;update,versions=v1,name=vtenant-v1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// ValidateCreate is called for new objects.
func (v *TenantValidator) ValidateCreate(_ context.Context, obj *platformv1.Tenant) (webhook.Warnings, error) {
	if len(platformv1.NamespaceOf(obj.Name)) > 63 {
		return nil, fmt.Errorf("metadata.name: the namespace %s would have more than 63 characters", platformv1.NamespaceOf(obj.Name))
	}
	return nil, nil
}

// ValidateUpdate is called for changes.
func (v *TenantValidator) ValidateUpdate(_ context.Context, _, newObj *platformv1.Tenant) (webhook.Warnings, error) {
	if has := newObj.Status.Databases; newObj.Spec.MaxDatabases < has {
		return nil, fmt.Errorf("spec.maxDatabases: the tenant has %d: delete some first", has)
	}
	return nil, nil
}

// ValidateDelete is called for deletions once the marker has the verb delete.
func (v *TenantValidator) ValidateDelete(ctx context.Context, obj *platformv1.Tenant) (webhook.Warnings, error) {
	return nil, nil
}
