// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package valid validates fields that many kinds have in common. A rule of a kind makes a
// [Field] with [Root] or [At] and calls its methods, which add errors with the paths and
// messages of Kubernetes.
package valid

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	quantity "k8s.io/apimachinery/pkg/api/resource"
)

// Finalizers checks that the finalizers of an object which have no domain are those of
// Kubernetes.
func Finalizers(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		errs = append(errs, Finalizer(name, path.Index(i))...)
	}
	return errs
}

// Finalizer checks one of them.
func Finalizer(name string, path *field.Path) field.ErrorList {
	switch {
	case strings.Contains(name, "/"), name == string(corev1.FinalizerKubernetes), name == metav1.FinalizerOrphanDependents, name == metav1.FinalizerDeleteDependents:
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")}
}

// Immutable checks that a field has not changed.
func Immutable(path *field.Path, now, before any) field.ErrorList {
	return apivalidation.ValidateImmutableField(now, before, path)
}

// OneOf checks that a value is one of the supported ones.
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
