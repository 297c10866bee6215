// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"
)

// What the operator's own certificate authority needs, where no certificate is mounted:
//
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=crontab-operator-webhook-ca,verbs=get;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=mutating-webhook-configuration;crontab-operator-mutating-webhook-configuration;validating-webhook-configuration;crontab-operator-validating-webhook-configuration,verbs=get;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=crontabs.stable.example.com,verbs=get;patch

// AddWebhooks adds the webhooks to a manager: defaults and validation, which a rule in
// the CRD cannot say because it would have to read a schedule, and the conversion of
// v1beta1.
func AddWebhooks(m *manager.Manager) error {
	return errors.Join(
		webhook.AddDefaulter(m, defaulter{}),
		webhook.AddValidator(m, validator{}),
		webhook.AddConversion(m, &v1.CronTab{}),
	)
}

// +kubebuilder:webhook:path=/mutate-stable-example-com-v1-crontab,mutating=true,failurePolicy=fail,sideEffects=None,groups=stable.example.com,resources=crontabs,verbs=create;update,versions=v1,name=mcrontab-v1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// defaulter writes schedules that have a name as five fields.
type defaulter struct{}

// Default implements webhook.Defaulter.
func (defaulter) Default(_ context.Context, ct *v1.CronTab) error {
	named := map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *",
		"@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}
	if fields, ok := named[ct.Spec.CronSpec]; ok {
		ct.Spec.CronSpec = fields
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-stable-example-com-v1-crontab,mutating=false,failurePolicy=fail,sideEffects=None,groups=stable.example.com,resources=crontabs,verbs=create;update,versions=v1,name=vcrontab-v1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// validator denies schedules that cannot be read, and warns of those that are never due.
type validator struct{}

// ValidateCreate implements webhook.Validator.
func (validator) ValidateCreate(_ context.Context, ct *v1.CronTab) (webhook.Warnings, error) {
	s, err := read(ct.Spec.CronSpec)
	if err != nil {
		return nil, apierrors.NewInvalid(v1.GroupVersion.WithKind("CronTab").GroupKind(), ct.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "cronSpec"), ct.Spec.CronSpec, err.Error()),
		})
	}
	if s.Next(time.Now().UTC()).IsZero() {
		return webhook.Warnings{"spec.cronSpec: the schedule is never due"}, nil
	}
	return nil, nil
}

// ValidateUpdate implements webhook.Validator. A schedule that is stored already is
// left, so that an older object can be changed otherwise, and deleted.
func (v validator) ValidateUpdate(ctx context.Context, before, after *v1.CronTab) (webhook.Warnings, error) {
	if before.Spec.CronSpec == after.Spec.CronSpec {
		return nil, nil
	}
	return v.ValidateCreate(ctx, after)
}

// ValidateDelete implements webhook.Validator.
func (validator) ValidateDelete(context.Context, *v1.CronTab) (webhook.Warnings, error) {
	return nil, nil
}
