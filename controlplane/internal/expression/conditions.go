// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"context"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	v1 "k8s.io/api/admissionregistration/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Conditions are the compiled match conditions of a policy or webhook. They are immutable.
type Conditions struct {
	compiled []admissioncel.CompilationResult
}

// CompileConditions compiles match conditions. One that does not compile is an error of
// [Conditions.Match].
func CompileConditions(compiler admissioncel.Compiler, list []v1.MatchCondition, options admissioncel.OptionalVariableDeclarations) *Conditions {
	if len(list) == 0 {
		return nil
	}
	c := &Conditions{compiled: make([]admissioncel.CompilationResult, len(list))}
	for i := range list {
		c.compiled[i] = compiler.CompileCELExpression(Returning(list[i].Expression, cel.BoolType), options, environment.StoredExpressions)
	}
	return c
}

// Match reports whether all conditions hold, and how many cannot be evaluated. One that does
// not hold decides, whatever errors others have; otherwise their errors are returned. nil
// matches.
func (c *Conditions) Match(ctx context.Context, a *Activation) (holds bool, failures int, err error) {
	if c == nil {
		return true, 0, nil
	}
	budget := ConditionsBudget
	holds = true
	var errs []error
	for i := range c.compiled {
		result, err := a.Evaluate(ctx, &c.compiled[i], &budget)
		switch {
		case err != nil:
			return false, len(errs), err
		case result.Err != nil:
			errs = append(errs, result.Err)
		case result.Value == types.False:
			holds = false
		}
	}
	if !holds || len(errs) == 0 {
		return holds, len(errs), nil
	}
	return false, len(errs), utilerrors.NewAggregate(errs)
}
