// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// outcome is what one validation says of a write.
type outcome int

const (
	admitted outcome = iota
	refused          // the expression is false
	failed           // there is an error
)

// decision of one validation.
type decision struct {
	outcome outcome
	message string
	reason  metav1.StatusReason
	elapsed time.Duration
}

// remark is the value of an audit annotation, or why it has none.
type remark struct {
	key, value string
	err        string
	elapsed    time.Duration
}

// verdict is what a policy says of a write with one parameter. Nothing of it: the match
// conditions exclude the write.
type verdict struct {
	decisions []decision
	remarks   []remark
}

func failure(err error) verdict {
	return verdict{decisions: []decision{{outcome: failed, message: err.Error()}}}
}

// matches reports whether the match conditions of a policy hold. An error decides by the
// failure policy.
func (p *program) matches(ctx context.Context, w *write, as match.Invocation, params *param) (bool, error) {
	if params == nil {
		return p.conditions.Match(ctx, w.Request, as, nil)
	}
	return p.conditions.Match(ctx, w.Request, as, params.value)
}

// activation returns the values for the expressions of the policy.
func (p *program) activation(v *match.Values, params *param, namespace func() any) *expression.Activation {
	a := &expression.Activation{Values: v.Values, Variables: p.variables}
	a.Namespace = namespace
	if params != nil {
		a.Params = params.value
	}
	return a
}

// judge evaluates the expressions of a ValidatingAdmissionPolicy.
func (p *program) judge(ctx context.Context, w *write, as match.Invocation, params *param) verdict {
	if p.failure != nil {
		return failure(p.failure)
	}
	if holds, err := p.matches(ctx, w, as, params); err != nil {
		return failure(err)
	} else if !holds {
		return verdict{}
	}
	v, err := w.Values(ctx, as)
	if err != nil {
		return failure(err)
	}
	a := p.activation(v, params, w.namespaceForm)
	budget := expression.PolicyBudget
	results := make([]expression.Result, len(p.validations))
	for i := range p.validations {
		var err error
		if results[i], err = a.Evaluate(ctx, &p.validations[i].compiled, &budget); err != nil {
			return failure(err)
		}
	}
	// As in kube-apiserver, messages and annotations cannot use the authorizer, not even
	// through a variable.
	a.Authorizer, a.ResourceAuthorizer = nil, nil
	messages, err := p.texts(ctx, a, results, budget)
	out := verdict{decisions: make([]decision, len(results))}
	for i := range results {
		d := &out.decisions[i]
		d.elapsed = results[i].Elapsed
		switch {
		case results[i].Err != nil:
			d.outcome, d.message = failed, results[i].Err.Error()
		case err != nil:
			d.outcome, d.message = failed, "failed messageExpression: "+err.Error()
		case results[i].Value != types.True:
			d.outcome, d.reason = refused, reasonOf(p.validations[i].rule)
			d.message = p.validations[i].text(messages[i])
		}
	}
	remarks, err := p.remarks(ctx, a)
	if err != nil {
		return failure(err)
	}
	out.remarks = remarks
	return out
}

// texts returns the values of message expressions. With an error no message can be had, and
// kube-apiserver refuses what other validations admit, too. Where the budget is enough
// for all, those that are not needed are not evaluated.
func (p *program) texts(ctx context.Context, a *expression.Activation, results []expression.Result, budget expression.Budget) ([]ref.Val, error) {
	out := make([]ref.Val, len(results))
	if p.messages == 0 {
		return out, nil
	}
	a.Forget()
	enough := budget >= expression.Budget(p.messages+p.variables.Len())*celconfig.PerCallLimit
	for i := range p.validations {
		message := p.validations[i].message
		if message == nil || enough && (results[i].Err != nil || results[i].Value == types.True) {
			continue
		}
		result, err := a.Evaluate(ctx, message, &budget)
		if errors.Is(err, apiservercel.ErrInternal) || errors.Is(err, apiservercel.ErrOutOfBudget) {
			return nil, err
		}
		if err == nil && result.Err == nil {
			out[i] = result.Value
		}
	}
	return out, nil
}

// text is the message of a refusal: the value of messageExpression if that is a line of
// text, else message, else the expression.
func (v *validation) text(value ref.Val) string {
	if value != nil {
		if s, ok := value.Value().(string); ok {
			s = strings.TrimSpace(s)
			if s != "" && len(s) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes && !strings.Contains(s, "\n") {
				return s
			}
		}
	}
	if v.rule.Message != "" {
		return strings.TrimSpace(v.rule.Message)
	}
	return "failed expression: " + strings.TrimSpace(v.rule.Expression)
}

// remarks evaluates the audit annotations. Those without a value are left out.
func (p *program) remarks(ctx context.Context, a *expression.Activation) ([]remark, error) {
	if len(p.annotations) == 0 {
		return nil, nil
	}
	a.Forget()
	budget := expression.PolicyBudget
	var out []remark
	for i := range p.annotations {
		n := &p.annotations[i]
		result, err := a.Evaluate(ctx, &n.compiled, &budget)
		if err != nil {
			return nil, err
		}
		r := remark{key: n.rule.Key, elapsed: result.Elapsed}
		switch {
		case result.Err != nil:
			r.err = result.Err.Error()
		case result.Value.Type() == types.NullType:
			continue
		case result.Value.Type() == types.StringType:
			if r.value = strings.TrimSpace(result.Value.Value().(string)); r.value == "" {
				continue
			}
		default:
			r.err = fmt.Sprintf("valueExpression '%v' resulted in unsupported return type: %v. Return type must be either string or null.",
				n.rule.ValueExpression, result.Value.Type())
		}
		out = append(out, r)
	}
	return out, nil
}
