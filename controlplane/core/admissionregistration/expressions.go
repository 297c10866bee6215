// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// rules are the rules of the kinds whose objects hold expressions. Their methods are safe
// for concurrent use.
type rules struct{ expression.Compiler }

// stored returns the environment in which an expression is compiled: one that was
// accepted before may use what has gone since.
func stored(before sets.Set[string], text string) environment.Type {
	if before.Has(text) {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}

// checkCompiled reports why an expression did not compile; value is the text that
// was given.
func checkCompiled(f *valid.Field, name, value string, result admissioncel.CompilationResult) {
	switch err := result.Error; {
	case err == nil:
	case err.Type == apiservercel.ErrorTypeInvalid:
		f.Invalid(name, value, err.Detail)
	default:
		f.Add(field.InternalError(f.PathOf(name), err))
	}
}
