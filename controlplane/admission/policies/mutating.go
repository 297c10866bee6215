// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// Mutating is the plugin MutatingAdmissionPolicy.
type Mutating struct {
	resource.MutatesOnly
	*set
	parameters *parameters
	converters converters
	metrics    metrics
}

var _ resource.Admission = (*Mutating)(nil)

// Mutates implements [resource.Mutator]: a changed object takes the place of the one that
// was there.
func (*Mutating) Mutates(*resource.AdmissionRequest) bool { return false }

// Admit implements [resource.Admission]. Which policies match is decided before the first
// one changes the object.
func (p *Mutating) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	if r.Operation == resource.Delete {
		return nil
	}
	candidates, err := p.candidates(r)
	if err != nil || len(candidates) == 0 {
		return err
	}
	m := &changes{p: p, w: newWrite(r, p.deps)}
	var todo []invocation
	for i := range candidates {
		todo = append(todo, m.match(ctx, &candidates[i])...)
	}
	if len(todo) > 0 {
		if err := m.run(ctx, todo); err != nil {
			return err
		}
	}
	return m.refusal()
}

// changes are those of all policies in one round of one write.
type changes struct {
	p *Mutating
	w *write
	// errs are why policies cannot be used or have failed, without those that are ignored.
	errs []policyError
	// applied reports whether any mutation was.
	applied bool
}

// invocation is a policy that is to change a write for a binding, with a parameter.
type invocation struct {
	policy  *policy
	binding *binding
	param   *param
	as      match.Invocation
}

// invocationKey names an invocation for the second round.
type invocationKey struct{ policy, binding, namespace, param string }

func (i *invocation) key() invocationKey {
	k := invocationKey{policy: i.policy.name, binding: i.binding.name}
	if i.param != nil {
		k.namespace, k.param = i.param.namespace, i.param.name
	}
	return k
}

// policyError is why a policy has failed. binding is nil if the policy itself cannot be used.
type policyError struct {
	policy  *policy
	binding *binding
	err     error
	reason  metav1.StatusReason
}

// fail notes an error, unless the policy ignores errors.
func (m *changes) fail(p *policy, b *binding, err error, reason metav1.StatusReason) {
	if !p.ignores {
		m.errs = append(m.errs, policyError{p, b, err, reason})
	}
}

// misconfigured notes that a policy or its binding cannot be used. b may be nil.
func (m *changes) misconfigured(p *policy, b *binding, err error) {
	what := "policy"
	if b != nil {
		what = "binding"
	}
	m.fail(p, b, fmt.Errorf("failed to configure %s: %w", what, err), "")
}

// match returns the invocations of a policy.
func (m *changes) match(ctx context.Context, p *policy) []invocation {
	as, ok, err := p.constraints.Matches(ctx, m.w.Request)
	if err != nil {
		m.misconfigured(p, nil, err)
		return nil
	}
	if !ok {
		return nil
	}
	r, err := m.p.parameters.resource(p.definition)
	if err != nil {
		m.misconfigured(p, nil, err)
		return nil
	}
	var out []invocation
	for _, b := range p.bindings {
		if b.constraints != nil {
			if _, ok, err := b.constraints.Matches(ctx, m.w.Request); err != nil {
				m.misconfigured(p, b, err)
				continue
			} else if !ok {
				continue
			}
		}
		if _, err := m.w.As(ctx, as.Kind); err != nil {
			m.misconfigured(p, nil, err)
			continue
		}
		params, err := m.p.parameters.of(ctx, p.definition, r, b, m.w.AttributedNamespace)
		if err != nil {
			m.misconfigured(p, b, err)
			continue
		}
		for _, one := range params {
			out = append(out, invocation{p, b, one, as})
		}
	}
	return out
}

// run carries out invocations in order. In the second round only those run that want to
// see changes which were made after them.
func (m *changes) run(ctx context.Context, todo []invocation) error {
	round := m.w.Round
	memory := roundsOf(m.w.AdmissionRequest)
	if round.Second() && memory.changedSince(m.w.Object) {
		memory.require()
	}
	defer func() { memory.keep(m.w.AdmissionRequest) }()
	if err := m.w.readNamespace(ctx); err != nil {
		return err
	}
	for i := range todo {
		one := &todo[i]
		program := m.p.programs.of(one.policy.definition)
		if program.failure != nil {
			m.fail(one.policy, one.binding, program.failure, metav1.StatusReasonInvalid)
			continue
		}
		if holds, err := program.matches(ctx, m.w, one.as, one.param); err != nil {
			m.fail(one.policy, one.binding, err, metav1.StatusReasonInvalid)
			continue
		} else if !holds {
			continue
		}
		if round.Second() && !memory.again.Has(one.key()) {
			continue
		}
		if err := m.mutate(ctx, one, program); err != nil {
			return err
		}
		if one.policy.again {
			memory.invoked.Insert(one.key())
		}
	}
	if m.applied {
		memory.require()
		round.Repeat()
	}
	return nil
}

// mutate carries out the mutations of one policy. An API status is the answer to the write;
// other errors are those of the policy.
func (m *changes) mutate(ctx context.Context, one *invocation, p *program) error {
	for i := range p.mutations {
		form, err := m.w.As(ctx, one.as.Kind)
		if err != nil {
			return err
		}
		if form.Object == nil {
			return nil // there is nothing to change
		}
		began := time.Now()
		err = m.apply(ctx, one, p, &p.mutations[i], form)
		label := "no_error"
		if err != nil {
			label = errorType(err.Error())
		}
		m.p.metrics.observe(time.Since(began), one.policy.name, one.binding.name, label)
		var status *apierrors.StatusError
		switch {
		case errors.As(err, &status):
			return status
		case err != nil:
			m.fail(one.policy, one.binding, err, metav1.StatusReasonInvalid)
		default:
			m.applied = true
		}
	}
	return nil
}

// apply carries out one mutation.
func (m *changes) apply(ctx context.Context, one *invocation, p *program, mutation *mutation, form *match.Form) error {
	if err := mutation.compiled.Error; err != nil {
		return err
	}
	values, err := m.w.Values(ctx, one.as)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	budget := expression.PolicyBudget
	result, err := p.activation(values, one.param, m.w.namespaceForm).Evaluate(ctx, &mutation.compiled, &budget)
	if err == nil {
		err = result.Err
	}
	if err != nil {
		return err
	}
	patched, err := m.patched(mutation, result.Value, form)
	if err != nil || patched == nil {
		return err
	}
	return m.w.replace(ctx, patched, one.as.Kind)
}

// refusal is the answer to a write that policies have failed for, nil if none has.
func (m *changes) refusal() error {
	if len(m.errs) == 0 {
		return nil
	}
	err := admission.NewForbidden(m.w.Attributes(), errors.New("admission request denied by policy"))
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	s := &status.ErrStatus
	for i := range m.errs {
		e := &m.errs[i]
		message := fmt.Sprintf("policy %q denied request: %v", e.policy.name, e.err)
		if e.binding != nil {
			message = fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", e.policy.name, e.binding.name, e.err)
		}
		if i == 0 {
			s.Message = message
			if e.reason != "" {
				s.Reason = e.reason
			}
		}
		if s.Details != nil {
			s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Message: message})
		}
	}
	return status
}

// rounds is what a write remembers of the policies until the second round.
type rounds struct {
	// invoked are the invocations that want to see later changes; again those to which
	// there was one.
	invoked, again sets.Set[invocationKey]
	// last is the object after the policies of the first round.
	last resource.Object
}

type roundsKey struct{}

func roundsOf(r *resource.AdmissionRequest) *rounds {
	if s, ok := r.Round.Value(roundsKey{}).(*rounds); ok {
		return s
	}
	s := &rounds{invoked: sets.New[invocationKey](), again: sets.New[invocationKey]()}
	r.Round.SetValue(roundsKey{}, s)
	return s
}

// require has those invoked again that want to see later changes. As in kube-apiserver
// that includes those which made the change.
func (s *rounds) require() {
	s.again = s.again.Union(s.invoked)
	s.invoked = sets.New[invocationKey]()
}

// changedSince reports whether the object has changed since the first round.
func (s *rounds) changedSince(obj resource.Object) bool {
	return len(s.invoked) > 0 && !resource.Equal(s.last, obj)
}

// keep remembers the object after the first round if a change would matter.
func (s *rounds) keep(r *resource.AdmissionRequest) {
	if len(s.invoked) > 0 && !r.Round.Second() && r.Object != nil {
		s.last = r.Object.DeepCopyObject().(resource.Object)
	}
}
