// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	policyv1 "k8s.io/api/policy/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// podDisruptionBudgets describes PodDisruptionBudgets.
func podDisruptionBudgets() *resource.Resource {
	return kind.Definition[policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudget]{
		Group: "policy", Version: "v1", Plural: "poddisruptionbudgets", Short: []string{"pdb"}, NameRule: kind.PathSegment,
		Metadata: kind.Metadata{ErrorsOnce: true, StatusErrorsOnce: true},
		Status:   true, Generations: true,
		Validate: validateDisruptionBudget, ValidateStatus: validateBudgetStatus,
		Columns: kind.Columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"),
		Row: func(b *policyv1.PodDisruptionBudget) []any {
			return []any{b.Name, orNA(b.Spec.MinAvailable), orNA(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed), kind.Age(b)}
		},
	}.Resource()
}

func orNA(v *intstr.IntOrString) string {
	if v == nil {
		return "N/A"
	}
	return v.String()
}

func validateDisruptionBudget(b, old *policyv1.PodDisruptionBudget) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &b.Spec
	f := root.Child("spec")
	if s.MinAvailable != nil && s.MaxUnavailable != nil {
		f.Invalid(valid.Self, valid.Untagged(*s), "minAvailable and maxUnavailable cannot be both set")
	}
	amount := func(name string, v *intstr.IntOrString) {
		if v != nil {
			f.Amount(name, *v)
			f.AtMost100Percent(name, *v)
		}
	}
	amount("minAvailable", s.MinAvailable)
	amount("maxUnavailable", s.MaxUnavailable)
	if s.Selector != nil {
		var o metavalidation.LabelSelectorValidationOptions
		o.AllowInvalidLabelValueInSelector = old != nil && len(metavalidation.ValidateLabelSelector(old.Spec.Selector, o, nil)) > 0
		f.Add(metavalidation.ValidateLabelSelector(s.Selector, o, f.PathOf("selector"))...)
	}
	if p := s.UnhealthyPodEvictionPolicy; p != nil {
		valid.Supported(&f, "unhealthyPodEvictionPolicy", *p, policyv1.AlwaysAllow, policyv1.IfHealthyBudget)
	}
	return errs
}

func validateBudgetStatus(b, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &b.Status
	f := root.Child("status")
	f.Add(metavalidation.ValidateConditions(s.Conditions, f.PathOf("conditions"))...)
	f.NotNegative("disruptionsAllowed", int64(s.DisruptionsAllowed))
	f.NotNegative("currentHealthy", int64(s.CurrentHealthy))
	f.NotNegative("desiredHealthy", int64(s.DesiredHealthy))
	f.NotNegative("expectedPods", int64(s.ExpectedPods))
	return errs
}
