// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package valid has the rules that the fields of many kinds share. Each rule
// takes the path of the field and returns the causes for which it is refused, in
// the words of Kubernetes.
package valid

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	quantity "k8s.io/apimachinery/pkg/api/resource"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Name checks the name of a new object by the rule of its kind, where that
// is stricter than the DNS subdomain which all kinds have to have.
func Name[P resource.Object](obj, old P, rule apivalidation.ValidateNameFunc) field.ErrorList {
	var none P
	if any(old) != any(none) {
		return nil
	}
	var errs field.ErrorList
	if obj.GetName() == "" { // which is said elsewhere
		return nil
	}
	for _, problem := range rule(obj.GetName(), false) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), obj.GetName(), problem))
	}
	return errs
}

// Immutable checks that a field has not changed.
func Immutable(path *field.Path, now, before any) field.ErrorList {
	return apivalidation.ValidateImmutableField(now, before, path)
}

// OneOf checks a value against the values there are; empty is left to others.
func OneOf[S ~string](path *field.Path, v S, values ...S) field.ErrorList {
	for _, known := range values {
		if v == known {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, v, values)}
}

// Quantity checks that an amount is not negative.
func Quantity(path *field.Path, q quantity.Quantity) field.ErrorList {
	if q.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, q.String(), "must be greater than or equal to 0").WithOrigin("minimum")}
	}
	return nil
}

// LabelName checks a name that becomes a label of a domain name.
func LabelName(path *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}
