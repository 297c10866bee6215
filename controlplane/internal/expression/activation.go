// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/lazy"
)

// Budget is what expressions may still cost, in the units of CEL. A call within an
// expression is limited besides, by the compiler.
type Budget int64

// The budgets of kube-apiserver: of the validations, the annotations or one mutation of a
// policy, and of the match conditions of a policy or webhook.
const (
	PolicyBudget     Budget = celconfig.RuntimeCELCostBudget
	ConditionsBudget Budget = celconfig.RuntimeCELCostBudgetMatchConditions
)

// spend reports whether a cost is within the budget, and takes it off.
func (b *Budget) spend(cost uint64) bool {
	if cost > math.MaxInt64 || int64(cost) > int64(*b) {
		return false
	}
	*b -= Budget(cost)
	return true
}

// Values are what expressions can refer to in one request. Objects are in the form of
// JSON, nil where there is none, and are not changed. They may be shared by activations.
type Values struct {
	Object, OldObject any
	// Request and Namespace return theirs; they are called when an expression refers to
	// it. A nil Namespace, or one that returns nil: there is no namespace.
	Request, Namespace func() any
	// Authorizer and ResourceAuthorizer are those of the library of Kubernetes; nil:
	// expressions cannot use them.
	Authorizer, ResourceAuthorizer ref.Val
}

// Activation has the values of variables while the expressions of one policy or webhook
// are evaluated. It is for one goroutine.
type Activation struct {
	Values
	// Params are the parameters of a policy; nil: none.
	Params any
	// Variables of a policy; nil: none. See [Activation.Forget].
	Variables *Variables

	known *lazy.MapValue
	cost  uint64 // of variables since the last expression
	ctx   context.Context
}

var _ cel.Activation = (*Activation)(nil)

// ResolveName implements [cel.Activation].
func (a *Activation) ResolveName(name string) (any, bool) {
	switch name {
	case admissioncel.ObjectVarName:
		return a.Object, true
	case admissioncel.OldObjectVarName:
		return a.OldObject, true
	case admissioncel.ParamsVarName:
		return a.Params, true
	case admissioncel.RequestVarName:
		return a.Request(), true
	case admissioncel.NamespaceVarName:
		if a.Namespace == nil {
			return nil, true
		}
		return a.Namespace(), true
	case admissioncel.AuthorizerVarName:
		return a.Authorizer, a.Authorizer != nil
	case admissioncel.RequestResourceAuthorizerVarName:
		return a.ResourceAuthorizer, a.ResourceAuthorizer != nil
	case admissioncel.VariableVarName:
		return a.variables(), true
	}
	return nil, false
}

// Parent implements [cel.Activation].
func (*Activation) Parent() cel.Activation { return nil }

// Result is the value of an expression, or why it has none.
type Result struct {
	Value   ref.Val
	Err     error
	Elapsed time.Duration
}

// Evaluate evaluates an expression and takes its cost, and that of the variables that it
// was the first to use, off the budget. An error means that no further expression may be
// evaluated within this budget; errors are in the words of kube-apiserver.
func (a *Activation) Evaluate(ctx context.Context, compiled *admissioncel.CompilationResult, b *Budget) (Result, error) {
	if err := compiled.Error; err != nil {
		return Result{Err: &apiservercel.Error{
			Type: apiservercel.ErrorTypeInvalid, Detail: fmt.Sprintf("compilation error: %v", err), Cause: err,
		}}, nil
	}
	text := compiled.ExpressionAccessor.GetExpression()
	a.ctx = ctx
	began := time.Now()
	value, details, err := compiled.Program.ContextEval(ctx, a)
	out := Result{Value: value, Elapsed: time.Since(began)}
	variables := a.cost
	a.cost = 0
	if !b.spend(variables) {
		return out, outOfBudget("validation failed due to running out of cost budget, no further validation rules will be run")
	}
	if details == nil {
		return out, &apiservercel.Error{
			Type: apiservercel.ErrorTypeInternal, Detail: fmt.Sprintf("runtime cost could not be calculated for expression: %v, no further expression will be run", text),
		}
	}
	cost := details.ActualCost()
	if cost == nil {
		return out, outOfBudget(fmt.Sprintf("runtime cost could not be calculated for expression: %v, no further expression will be run", text))
	}
	if !b.spend(*cost) {
		return out, outOfBudget("validation failed due to running out of cost budget, no further validation rules will be run")
	}
	if err != nil {
		out.Value, out.Err = nil, &apiservercel.Error{
			Type: apiservercel.ErrorTypeInvalid, Detail: fmt.Sprintf("expression '%v' resulted in error: %v", text, err),
		}
	}
	return out, nil
}

func outOfBudget(detail string) error {
	return &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: detail, Cause: apiservercel.ErrOutOfBudget}
}

// Variables are the compiled variables of a policy. They are immutable once complete, and
// shared by activations.
type Variables struct {
	names    []string
	compiled []admissioncel.CompilationResult
}

// Add adds a variable, or replaces the one of that name. Its expression may use those that
// were added before it.
func (v *Variables) Add(name string, compiled admissioncel.CompilationResult) {
	if i := slices.Index(v.names, name); i >= 0 {
		v.compiled[i] = compiled
		return
	}
	v.names, v.compiled = append(v.names, name), append(v.compiled, compiled)
}

// Len returns the number of variables.
func (v *Variables) Len() int {
	if v == nil {
		return 0
	}
	return len(v.names)
}

// Forget makes the following expressions evaluate the variables again: they are evaluated
// once for each list of expressions with a budget of its own.
func (a *Activation) Forget() { a.known = nil }

// variables returns the map of the variables, whose values are evaluated when they are used.
func (a *Activation) variables() *lazy.MapValue {
	if a.known != nil {
		return a.known
	}
	a.known = lazy.NewMapValue(types.NewObjectType("kubernetes.variables")) // kube-apiserver's name for it
	for i := range a.Variables.Len() {
		name, compiled := a.Variables.names[i], &a.Variables.compiled[i]
		a.known.Append(name, func(*lazy.MapValue) ref.Val { return a.variable(name, compiled) })
	}
	return a.known
}

func (a *Activation) variable(name string, compiled *admissioncel.CompilationResult) ref.Val {
	if compiled.Error != nil {
		return types.NewErr("composited variable %q fails to compile: %v", name, compiled.Error)
	}
	value, details, err := compiled.Program.ContextEval(a.ctx, a)
	if details == nil {
		return types.NewErr("unable to get evaluation details of variable %q", name)
	}
	cost := details.ActualCost()
	if cost == nil {
		return types.NewErr("unable to calculate cost of variable %q", name)
	}
	if a.cost += *cost; a.cost < *cost {
		a.cost = math.MaxUint64
	}
	if err != nil {
		return types.NewErr("composited variable %q fails to evaluate: %v", name, err)
	}
	return value
}
