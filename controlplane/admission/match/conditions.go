// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// condition is one matchCondition as the library wants it.
type condition v1.MatchCondition

// GetExpression implements admissioncel.ExpressionAccessor.
func (c *condition) GetExpression() string { return c.Expression }

// ReturnTypes implements admissioncel.ExpressionAccessor.
func (c *condition) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

// Conditions are the matchConditions of one webhook or policy. Their expressions are
// compiled on first use, and once. They are safe for concurrent use.
type Conditions struct {
	o        ConditionOptions
	compiled func() admissioncel.ConditionEvaluator
}

// ConditionOptions say how conditions are compiled and counted.
type ConditionOptions struct {
	// Name of the webhook or policy, Kind ("webhook" or "policy") and Type ("admit",
	// "validating" or "validate") are the labels of the metrics.
	Name, Kind, Type string
	// FailurePolicy of conditions that cannot be evaluated. nil: Fail.
	FailurePolicy *v1.FailurePolicyType
	// Params reports whether the expressions may use the variable params.
	Params bool
	// Compiler of the expressions; required.
	Compiler admissioncel.Compiler
}

// NewConditions returns conditions, nil for an empty list.
func NewConditions(list []v1.MatchCondition, o ConditionOptions) *Conditions {
	if len(list) == 0 {
		return nil
	}
	return &Conditions{o: o, compiled: sync.OnceValue(func() admissioncel.ConditionEvaluator {
		results := make([]admissioncel.CompilationResult, len(list))
		for i := range list {
			one := condition(list[i])
			results[i] = o.Compiler.CompileCELExpression(&one, admissioncel.OptionalVariableDeclarations{
				HasParams: o.Params, HasAuthorizer: true,
			}, environment.StoredExpressions)
		}
		return admissioncel.NewCondition(results)
	})}
}

// Match reports whether all conditions hold for a request as an invocation sees it. A
// condition that is false decides before one that fails. A failure is an error, or no
// match if the failure policy is Ignore. params may be nil. Nil conditions hold.
func (c *Conditions) Match(ctx context.Context, q *Request, as Invocation, params runtime.Object) (ok bool, err error) {
	if c == nil {
		return true, nil
	}
	form, err := q.As(ctx, as.Kind)
	if err != nil {
		return false, err
	}
	begun, failures := time.Now(), 0
	defer func() {
		q.d.metrics.observe(&c.o, string(q.Operation), time.Since(begun), failures, err == nil && !ok)
	}()
	results, _, err := c.compiled().ForInput(ctx, form,
		admissioncel.CreateAdmissionRequest(q.Attributes(), metav1.GroupVersionResource(as.Resource), metav1.GroupVersionKind(as.Kind)),
		admissioncel.OptionalVariableBindings{VersionedParams: params, Authorizer: q.d.Authorizer},
		nil, celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil {
		return false, c.failure(err)
	}
	var failed []error
	for i := range results {
		if e := results[i].Error; e != nil {
			failed = append(failed, e)
			failures++
		}
		if results[i].EvalResult == types.False {
			return false, nil
		}
	}
	if len(failed) > 0 {
		return false, c.failure(utilerrors.NewAggregate(failed))
	}
	return true, nil
}

// failure is what a failure means by the failure policy.
func (c *Conditions) failure(err error) error {
	if p := c.o.FailurePolicy; p != nil && *p == v1.Ignore {
		return nil
	}
	return err
}
