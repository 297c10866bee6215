// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"

	platformv1 "github.com/steer-dev/steer/examples/tenants/api/v1"
)

// SetupDatabaseWebhookWithManager adds the webhooks of Database to a manager.
func SetupDatabaseWebhookWithManager(m *manager.Manager) error {
	return errors.Join(
		webhook.AddValidator(m, &DatabaseValidator{client: m.Client()}),
	)
}

// DatabaseValidator admits Database objects or denies them with an error.
type DatabaseValidator struct{ client client.Client }

// +kubebuilder:webhook:path=/validate-platform-example-com-v1-database,mutating=false,failurePolicy=fail,sideEffects=None,groups=platform.example.com,resources=databases,verbs=create;update,versions=v1,name=vdatabase-v1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// ValidateCreate is called for new objects.
func (v *DatabaseValidator) ValidateCreate(ctx context.Context, obj *platformv1.Database) (webhook.Warnings, error) {
	tenant := &platformv1.Tenant{}
	err := v.client.Get(ctx, client.ObjectKey{Name: obj.Spec.Tenant}, tenant)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("spec.tenant: there is no Tenant %s", obj.Spec.Tenant)
	case err != nil:
		return nil, err
	case tenant.DeletionTimestamp != nil:
		return nil, fmt.Errorf("spec.tenant: the Tenant %s is being deleted", tenant.Name)
	case obj.Namespace != platformv1.NamespaceOf(tenant.Name):
		return nil, fmt.Errorf("metadata.namespace: Databases of the Tenant %s are in %s", tenant.Name, platformv1.NamespaceOf(tenant.Name))
	}
	var list platformv1.DatabaseList
	if err := v.client.List(ctx, &list, client.MatchingFields{platformv1.TenantField: tenant.Name}); err != nil {
		return nil, err
	}
	if len(list.Items) >= int(tenant.Spec.MaxDatabases) {
		return nil, fmt.Errorf("spec.tenant: the Tenant %s has %d Databases, and may have no more", tenant.Name, len(list.Items))
	}
	return nil, nil
}

// ValidateUpdate is called for changes.
func (v *DatabaseValidator) ValidateUpdate(_ context.Context, oldObj, newObj *platformv1.Database) (webhook.Warnings, error) {
	if newObj.Spec.Replicas < oldObj.Spec.Replicas {
		return webhook.Warnings{"the data of the servers that go is kept in their volumes"}, nil
	}
	return nil, nil
}

// ValidateDelete is called for deletions once the marker has the verb delete.
func (v *DatabaseValidator) ValidateDelete(ctx context.Context, obj *platformv1.Database) (webhook.Warnings, error) {
	return nil, nil
}
