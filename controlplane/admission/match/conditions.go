// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/admissionregistration/v1"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// Conditions are the matchConditions of one webhook or policy. Their expressions are
// compiled on first use, and once. They are safe for concurrent use.
type Conditions struct {
	o        ConditionOptions
	compiled func() *expression.Conditions
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
	// Variables of the policy; nil: none.
	Variables *expression.Variables
}

// NewConditions returns conditions, nil for an empty list.
func NewConditions(list []v1.MatchCondition, o ConditionOptions) *Conditions {
	if len(list) == 0 {
		return nil
	}
	compiler := o.Compiler
	o.Compiler = nil // that of a policy with variables is large, and not needed again
	return &Conditions{o: o, compiled: sync.OnceValue(func() *expression.Conditions {
		return expression.CompileConditions(compiler, list, admissioncel.OptionalVariableDeclarations{HasParams: o.Params, HasAuthorizer: true})
	})}
}

// Match reports whether all conditions hold for a request as an invocation sees it. A
// condition that is false decides before one that fails. A failure is an error, or no
// match if the failure policy is Ignore. params are in the form of JSON, nil for none. Nil
// conditions hold.
func (c *Conditions) Match(ctx context.Context, q *Request, as Invocation, params any) (ok bool, err error) {
	if c == nil {
		return true, nil
	}
	values, err := q.Values(ctx, as)
	if err != nil {
		return false, err
	}
	begun := time.Now()
	a := &expression.Activation{Values: values.Values, Params: params, Variables: c.o.Variables}
	a.Request = values.conditions
	ok, failures, err := c.compiled().Match(ctx, a)
	took := time.Since(begun)
	if err != nil {
		ok, err = false, c.failure(err)
	}
	q.d.metrics.observe(&c.o, string(q.Operation), took, failures, ok, err != nil)
	return ok, err
}

// failure is what a failure means by the failure policy.
func (c *Conditions) failure(err error) error {
	if p := c.o.FailurePolicy; p != nil && *p == v1.Ignore {
		return nil
	}
	return err
}
