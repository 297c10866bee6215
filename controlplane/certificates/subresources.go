// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

// approvalRules are the rules of the subresource approval: it changes conditions
// and nothing else.
type approvalRules struct{ plain }

// Prepare implements [resource.Strategy].
func (approvalRules) Prepare(_ context.Context, obj, old resource.Object) {
	current, before := obj.(request), old.(request)
	conditions := current.Status.Conditions
	current.Spec, current.Status = before.Spec, before.Status
	current.Status.Conditions = conditions
	keepTimes(current, before)
}

// Validate implements [resource.Strategy].
func (approvalRules) Validate(_ context.Context, obj, old resource.Object) field.ErrorList {
	current, before := obj.(request), old.(request)
	return append(validateConditions(current), unchanged(current, before, false, true)...)
}

// statusRules are the rules of the subresource status, to which signers write the
// certificate. It does not change the conditions Approved and Denied.
type statusRules struct{ plain }

// Prepare implements [resource.Strategy].
func (statusRules) Prepare(_ context.Context, obj, old resource.Object) {
	current, before := obj.(request), old.(request)
	current.Spec = before.Spec
	for _, t := range decisions() {
		was := condition(before, t)
		if was == nil {
			continue
		}
		if now := condition(current, t); now != nil {
			*now = *was
		} else {
			current.Status.Conditions = append(current.Status.Conditions, *was)
		}
	}
	keepTimes(current, before)
}

// Validate implements [resource.Strategy].
func (statusRules) Validate(_ context.Context, obj, old resource.Object) field.ErrorList {
	current, before := obj.(request), old.(request)
	errs := append(validateConditions(current), unchanged(current, before, true, true)...)
	path := field.NewPath("status", "certificate")
	if was := before.Status.Certificate; len(was) > 0 && !slices.Equal(was, current.Status.Certificate) {
		errs = append(errs, field.Forbidden(path, "updates may not modify existing certificate content"))
	}
	if len(current.Status.Certificate) > 0 && !slices.Equal(before.Status.Certificate, current.Status.Certificate) {
		if problem := certificateProblem(current.Status.Certificate); problem != "" {
			errs = append(errs, field.Invalid(path, "<certificate data>", problem))
		}
	}
	return errs
}

// plain holds the methods of [resource.Strategy] that do nothing.
type plain struct{}

// Normalize implements [resource.Strategy].
func (plain) Default(resource.Object) ([]string, error) { return nil, nil }

// Warnings implements [resource.Strategy].
func (plain) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }

// decisions are the conditions that decide on a request.
func decisions() []certificatesv1.RequestConditionType {
	return []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied}
}

// keepTimes sets the times of conditions that have none.
func keepTimes(current, before request) {
	now := metav1.NewTime(time.Now())
	for i := range current.Status.Conditions {
		c := &current.Status.Conditions[i]
		was := condition(before, c.Type)
		if c.LastTransitionTime.IsZero() {
			if c.LastTransitionTime = now; was != nil && was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
		if c.LastUpdateTime.IsZero() {
			if c.LastUpdateTime = now; was != nil && was.Status == c.Status && was.Reason == c.Reason && was.Message == c.Message {
				c.LastUpdateTime = was.LastUpdateTime
			}
		}
	}
}

// unchanged refuses changes of conditions: Approved and Denied are not set through
// status, and Approved, Denied and Failed are never removed.
func unchanged(current, before request, mayNotAdd, mayNotRemove bool) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status", "conditions")
	for _, t := range append(decisions(), certificatesv1.CertificateFailed) {
		was, is := has(before, t), has(current, t)
		switch {
		case mayNotAdd && t != certificatesv1.CertificateFailed && is && !was:
			errs = append(errs, field.Forbidden(path, `updates may not add a condition of type "`+string(t)+`"`))
		case mayNotRemove && was && !is:
			errs = append(errs, field.Forbidden(path, `updates may not remove a condition of type "`+string(t)+`"`))
		}
	}
	return errs
}
