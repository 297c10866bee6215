// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
)

// validName checks the name of a new object by the rule of its kind, where that
// is stricter than the DNS subdomain which all kinds have to have.
func validName[P apiserver.Object](obj, old P, rule apivalidation.ValidateNameFunc) field.ErrorList {
	var none P
	if any(old) != any(none) {
		return nil
	}
	var errs field.ErrorList
	for _, problem := range rule(obj.GetName(), false) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), obj.GetName(), problem))
	}
	return errs
}

// validKey checks a key of a ConfigMap or Secret.
func validKey(path *field.Path, key string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(path, key, problem))
	}
	return errs
}

// validJSON checks that a key of a Secret holds JSON.
func validJSON(s *corev1.Secret, key string) field.ErrorList {
	path := field.NewPath("data").Key(key)
	raw, ok := s.Data[key]
	if !ok {
		return field.ErrorList{field.Required(path, "")}
	}
	var parsed map[string]any
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return field.ErrorList{field.Invalid(path, "<secret contents redacted>", err.Error())}
	}
	return nil
}

// validPort checks the number of a port.
func validPort(path *field.Path, port int32) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsValidPortNum(int(port)) {
		errs = append(errs, field.Invalid(path, port, problem))
	}
	return errs
}

// notNegative checks a count.
func notNegative[N int32 | int64](path *field.Path, n *N) field.ErrorList {
	if n == nil || *n >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *n, "must be greater than or equal to 0").WithOrigin("minimum")}
}

// immutable checks that a field has not changed.
func immutable(path *field.Path, now, before any) field.ErrorList {
	return apivalidation.ValidateImmutableField(now, before, path)
}

// supported checks a value against the values there are; empty is left to others.
func supported[S ~string](path *field.Path, v S, values ...S) field.ErrorList {
	for _, known := range values {
		if v == known {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, v, values)}
}

// count is "1 thing" or "2 things" without the thing: an integer for a cell.
func count[T any](list []T) int64 { return int64(len(list)) }

// fraction shows how many of a number are there.
func fraction(have, want int32) string { return fmt.Sprintf("%d/%d", have, want) }

// validFinalizer checks the name of one of a namespace's own finalizers.
func validFinalizer(path *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	if !strings.Contains(name, "/") && name != string(corev1.FinalizerKubernetes) && name != "orphan" && name != "foregroundDeletion" {
		errs = append(errs, field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))
	}
	return errs
}
