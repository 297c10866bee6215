// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the webhooks of websites, the way a kubebuilder project does.
package v1

import (
	"context"
	"errors"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1 "example.com/website/api/v1"
)

// SetupWebsiteWebhookWithManager registers the webhooks.
func SetupWebsiteWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &appsv1.Website{}).
		WithValidator(&WebsiteCustomValidator{}).
		WithDefaulter(&WebsiteCustomDefaulter{}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-apps-example-com-v1-website,mutating=true,failurePolicy=fail,sideEffects=None,groups=apps.example.com,resources=websites,verbs=create;update,versions=v1,name=mwebsite-v1.kb.io,admissionReviewVersions=v1

// WebsiteCustomDefaulter completes images.
type WebsiteCustomDefaulter struct{}

// Default implements admission.Defaulter.
func (*WebsiteCustomDefaulter) Default(_ context.Context, site *appsv1.Website) error {
	if !strings.Contains(site.Spec.Image, ":") {
		site.Spec.Image += ":latest"
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-apps-example-com-v1-website,mutating=false,failurePolicy=fail,sideEffects=None,groups=apps.example.com,resources=websites,verbs=create;update,versions=v1,name=vwebsite-v1.kb.io,admissionReviewVersions=v1

// WebsiteCustomValidator bounds the replicas.
type WebsiteCustomValidator struct{}

// ValidateCreate implements admission.Validator.
func (*WebsiteCustomValidator) ValidateCreate(_ context.Context, site *appsv1.Website) (admission.Warnings, error) {
	if site.Spec.Replicas > 5 {
		return nil, errors.New("a website has 5 replicas at most")
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (v *WebsiteCustomValidator) ValidateUpdate(ctx context.Context, _, site *appsv1.Website) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, site)
}

// ValidateDelete implements admission.Validator.
func (*WebsiteCustomValidator) ValidateDelete(context.Context, *appsv1.Website) (admission.Warnings, error) {
	return nil, nil
}
