// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// isReview reports whether the server supports a version of ConversionReview.
func isReview(version string) bool { return version == "v1" || version == "v1beta1" }

// conversion validates how objects are converted between versions.
func (c *checker) conversion(conv *apiextensions.CustomResourceConversion, at *field.Path) {
	if conv == nil {
		return
	}
	c.oneOf(at.Child("strategy"), string(conv.Strategy), string(apiextensions.NoneConverter), string(apiextensions.WebhookConverter))
	client, reviews := at.Child("webhookClientConfig"), at.Child("conversionReviewVersions")
	if conv.Strategy == apiextensions.WebhookConverter {
		c.client(conv.WebhookClientConfig, client)
		c.reviews(conv.ConversionReviewVersions, reviews)
		return
	}
	const pointless = "should not be set when strategy is not set to Webhook"
	if conv.WebhookClientConfig != nil {
		c.forbidden(client, pointless)
	}
	if len(conv.ConversionReviewVersions) > 0 {
		c.forbidden(reviews, pointless)
	}
}

func (c *checker) client(config *apiextensions.WebhookClientConfig, at *field.Path) {
	if config == nil {
		c.required(at, "required when strategy is set to Webhook")
		return
	}
	switch s := config.Service; {
	case (config.URL == nil) == (s == nil):
		c.required(at, "exactly one of url or service is required")
	case s != nil:
		c.errs = append(c.errs, WebhookService(at.Child("service"), Service{Name: s.Name, Namespace: s.Namespace, Path: s.Path, Port: s.Port})...)
	default:
		c.errs = append(c.errs, WebhookURL(at.Child("url"), *config.URL)...)
	}
	if len(config.CABundle) > 0 && !c.ratchet.caBundle {
		c.errs = append(c.errs, CABundle(at.Child("caBundle"), config.CABundle)...)
	}
}

func (c *checker) reviews(versions []string, at *field.Path) {
	if len(versions) == 0 {
		c.required(at, "")
		return
	}
	for i, v := range versions {
		if slices.Contains(versions[:i], v) {
			c.invalid(at.Index(i), v, "duplicate version")
			continue
		}
		for _, problem := range utilvalidation.IsDNS1035Label(v) {
			c.invalid(at.Index(i), v, problem)
		}
	}
	if !c.ratchet.reviews && !slices.ContainsFunc(versions, isReview) {
		c.invalid(at, versions, "must include at least one of v1, v1beta1")
	}
}

// distrusts reports whether a webhook has a CA bundle without certificates.
func distrusts(conv *apiextensions.CustomResourceConversion) bool {
	return conv != nil && conv.WebhookClientConfig != nil && len(conv.WebhookClientConfig.CABundle) > 0 &&
		len(CABundle(nil, conv.WebhookClientConfig.CABundle)) > 0
}
