// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/auth"
)

func validateSubject(obj *authorizationv1.SubjectAccessReview) field.ErrorList {
	return append(validSubjectSpec(&obj.Spec), noMetadata(&obj.ObjectMeta, false)...)
}

func validateLocalSubject(obj *authorizationv1.LocalSubjectAccessReview) field.ErrorList {
	errs := append(validSubjectSpec(&obj.Spec), noMetadata(&obj.ObjectMeta, true)...)
	if r := obj.Spec.ResourceAttributes; r != nil && r.Namespace != obj.Namespace {
		errs = append(errs, field.Invalid(field.NewPath("spec.resourceAttributes.namespace"), r.Namespace, "must match metadata.namespace"))
	}
	if n := obj.Spec.NonResourceAttributes; n != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec.nonResourceAttributes"), shown(n), "disallowed on this kind of request"))
	}
	return errs
}

func validateSelfSubject(obj *authorizationv1.SelfSubjectAccessReview) field.ErrorList {
	errs := oneKind(obj.Spec.ResourceAttributes, obj.Spec.NonResourceAttributes)
	errs = append(errs, validSelectors(obj.Spec.ResourceAttributes)...)
	return append(errs, noMetadata(&obj.ObjectMeta, false)...)
}

func validSubjectSpec(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := oneKind(s.ResourceAttributes, s.NonResourceAttributes)
	if s.User == "" && len(s.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), s.User, "at least one of user or group must be specified"))
	}
	return append(errs, validSelectors(s.ResourceAttributes)...)
}

func oneKind(r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) field.ErrorList {
	path := field.NewPath("spec")
	if r != nil && n != nil {
		return field.ErrorList{field.Invalid(path, shown(n), "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	if r == nil && n == nil {
		return field.ErrorList{field.Invalid(path, n, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	return nil
}

// shown is a path as refusals show it.
func shown(n *authorizationv1.NonResourceAttributes) any {
	return struct{ Path, Verb string }{n.Path, n.Verb}
}

// noMetadata refuses metadata on what is never stored.
func noMetadata(meta *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	given, text := *meta, "must be empty"
	given.ManagedFields = nil
	if namespaced {
		given.Namespace, text = "", "must be empty except for namespace"
	}
	if equality.Semantic.DeepEqual(given, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), *meta, text)}
}

func validSelectors(r *authorizationv1.ResourceAttributes) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("spec.resourceAttributes")
	if s := r.FieldSelector; s != nil {
		at := path.Child("fieldSelector")
		errs = append(errs, oneForm(s.RawSelector, len(s.Requirements), at)...)
		for i := range s.Requirements {
			errs = append(errs, metav1validation.ValidateFieldSelectorRequirement(s.Requirements[i],
				metav1validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at.Child("requirements").Index(i))...)
		}
	}
	if s := r.LabelSelector; s != nil {
		at := path.Child("labelSelector")
		errs = append(errs, oneForm(s.RawSelector, len(s.Requirements), at)...)
		for i := range s.Requirements {
			errs = append(errs, metav1validation.ValidateLabelSelectorRequirement(s.Requirements[i],
				metav1validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at.Child("requirements").Index(i))...)
		}
	}
	return errs
}

// oneForm refuses a selector that is given in both forms, or in none.
func oneForm(raw string, requirements int, at *field.Path) field.ErrorList {
	switch {
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(at.Child("rawSelector"), raw, "may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{field.Required(at.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", at))}
	}
	return nil
}

// selectors takes the selectors over into what an authorizer decides on, as far
// as they can be read: with less of them it decides on more objects. It returns
// notes about the rest.
func selectors(to *auth.Attributes, r *authorizationv1.ResourceAttributes) (notes []string) {
	var byField fields.Requirements
	var byLabel labels.Requirements
	if s := r.FieldSelector; s != nil {
		bad := false
		if s.RawSelector != "" {
			parsed, err := fields.ParseSelector(s.RawSelector)
			if bad = err != nil; !bad {
				byField = parsed.Requirements()
			}
		}
		for i := range s.Requirements {
			required, ok := fieldRequirement(&s.Requirements[i])
			if bad = bad || !ok; ok {
				byField = append(byField, required)
			}
		}
		if bad {
			notes = append(notes, ignoredNote("fieldSelector", len(byField)))
		}
	}
	if s := r.LabelSelector; s != nil {
		bad := false
		if s.RawSelector != "" {
			parsed, err := labels.Parse(s.RawSelector)
			if bad = err != nil; !bad {
				byLabel, _ = parsed.Requirements()
			}
		}
		for i := range s.Requirements {
			required, ok := labelRequirement(&s.Requirements[i])
			if bad = bad || !ok; ok {
				byLabel = append(byLabel, *required)
			}
		}
		if bad {
			notes = append(notes, ignoredNote("labelSelector", len(byLabel)))
		}
	}
	if len(byField)+len(byLabel) > 0 {
		to.Selected = func() (fields.Requirements, labels.Requirements) { return byField, byLabel }
	}
	return notes
}

func ignoredNote(selector string, kept int) string {
	partially := ""
	if kept > 0 {
		partially = "partially "
	}
	return "spec.resourceAttributes." + selector + " " + partially + "ignored due to parse error"
}

// fieldRequirement returns a requirement in the form of a parsed selector, which
// has no others than these two.
func fieldRequirement(r *metav1.FieldSelectorRequirement) (fields.Requirement, bool) {
	if len(r.Values) != 1 {
		return fields.Requirement{}, false
	}
	out := fields.Requirement{Field: r.Key, Operator: selection.Equals, Value: r.Values[0]}
	switch r.Operator {
	case metav1.FieldSelectorOpIn:
		return out, true
	case metav1.FieldSelectorOpNotIn:
		out.Operator = selection.NotEquals
		return out, true
	}
	return out, false
}

func labelRequirement(r *metav1.LabelSelectorRequirement) (*labels.Requirement, bool) {
	var operator selection.Operator
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		operator = selection.In
	case metav1.LabelSelectorOpNotIn:
		operator = selection.NotIn
	case metav1.LabelSelectorOpExists:
		operator = selection.Exists
	case metav1.LabelSelectorOpDoesNotExist:
		operator = selection.DoesNotExist
	default:
		return nil, false
	}
	out, err := labels.NewRequirement(r.Key, operator, r.Values)
	return out, err == nil
}
