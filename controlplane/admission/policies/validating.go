// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	v1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Validating is the plugin ValidatingAdmissionPolicy.
type Validating struct {
	resource.ValidatesOnly
	*set
	parameters *parameters
	metrics    metrics
	log        *slog.Logger
}

var _ resource.Admission = (*Validating)(nil)

// Validate implements [resource.Admission]. All policies that match are evaluated, for
// their warnings and annotations; the first refusal is the answer.
func (p *Validating) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	candidates, err := p.candidates(r)
	if err != nil || len(candidates) == 0 {
		return err
	}
	v := &checks{p: p, w: newWrite(r, p.deps)}
	for i := range candidates {
		if err := v.evaluate(ctx, &candidates[i]); err != nil {
			return err
		}
	}
	if v.denied == nil {
		return nil
	}
	return v.denied.status(v.w.Attributes())
}

// checks is the evaluation of all policies for one write.
type checks struct {
	p *Validating
	w *write
	// denied is the first refusal.
	denied *denial
}

// denial is a refusal by a policy. The binding is empty if the policy itself cannot be used.
type denial struct {
	policy, binding string
	message         string
	reason          metav1.StatusReason
}

// deny notes a refusal.
func (v *checks) deny(d denial) {
	if v.denied == nil {
		v.denied = &d
	}
}

// misconfigured notes that a policy or its binding cannot be used, unless errors are
// ignored. b may be nil.
func (v *checks) misconfigured(p *policy, b *binding, err error) {
	switch {
	case p.ignores:
	case b == nil:
		v.deny(denial{policy: p.name, message: "failed to configure policy: " + err.Error()})
	default:
		v.deny(denial{policy: p.name, binding: b.name, message: "failed to configure binding: " + err.Error()})
	}
}

// evaluate evaluates one policy for each of its bindings.
func (v *checks) evaluate(ctx context.Context, p *policy) error {
	as, ok, err := p.constraints.Matches(ctx, v.w.Request)
	if err != nil {
		v.misconfigured(p, nil, err)
		return nil
	}
	if !ok {
		return nil
	}
	r, err := v.p.parameters.resource(p.definition)
	if err != nil {
		v.misconfigured(p, nil, err)
		return nil
	}
	var noted annotations
	for _, b := range p.bindings {
		if b.constraints != nil {
			if _, ok, err := b.constraints.Matches(ctx, v.w.Request); err != nil {
				v.misconfigured(p, b, err)
				continue
			} else if !ok {
				continue
			}
		}
		params, err := v.p.parameters.of(ctx, p.definition, r, b, v.w.AttributedNamespace)
		if err != nil {
			v.misconfigured(p, b, err)
			continue
		}
		if len(params) == 0 {
			continue
		}
		if _, err := v.w.Values(ctx, as); err != nil {
			v.misconfigured(p, b, fmt.Errorf("failed to convert object version: %w", err))
			continue
		}
		if err := v.w.readNamespace(ctx); err != nil {
			return err
		}
		for _, one := range params {
			verdict := v.p.programs.of(p.definition).judge(ctx, v.w, as, one)
			v.act(ctx, p, b, verdict.decisions)
			v.note(p, b, verdict.remarks, &noted)
		}
	}
	noted.publish(ctx, v.p.log, v.w, p.name)
	return nil
}

// act does what the actions of a binding say about the decisions of its policy.
func (v *checks) act(ctx context.Context, p *policy, b *binding, decisions []decision) {
	for i := range decisions {
		d := &decisions[i]
		if d.outcome == admitted {
			continue
		}
		if d.outcome == failed && p.ignores {
			v.observe(d.elapsed, p, b, d.message, "allow")
			continue
		}
		for _, action := range b.actions {
			switch action {
			case v1.Deny:
				v.deny(denial{policy: p.name, binding: b.name, message: d.message, reason: d.reason})
				v.observe(d.elapsed, p, b, d.message, "deny")
			case v1.Audit:
				annotateFailure(ctx, v.p.log, v.w, p, b, i, d.message)
				v.observe(d.elapsed, p, b, d.message, "audit")
			case v1.Warn:
				v.w.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.name, b.name, d.message))
				v.observe(d.elapsed, p, b, d.message, "warn")
			}
		}
	}
}

// note collects the audit annotations of a policy. An error in one refuses the write,
// whatever the actions of the binding, unless errors are ignored.
func (v *checks) note(p *policy, b *binding, remarks []remark, noted *annotations) {
	for i := range remarks {
		r := &remarks[i]
		switch {
		case r.err == "":
			noted.add(r.key, r.value)
		case !p.ignores:
			v.deny(denial{policy: p.name, binding: b.name, message: r.err})
			v.observe(r.elapsed, p, b, r.err, "deny")
		}
	}
}

func (v *checks) observe(elapsed time.Duration, p *policy, b *binding, message, action string) {
	v.p.metrics.observe(elapsed, p.name, b.name, errorType(message), action)
}

// status returns the answer to a write that is refused.
func (d *denial) status(a admission.Attributes) error {
	message := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", d.policy, d.message)
	if d.binding != "" {
		message = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", d.policy, d.binding, d.message)
	}
	err := admission.NewForbidden(a, errors.New(message))
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	s := &status.ErrStatus
	switch s.Reason = d.reason; d.reason {
	case metav1.StatusReasonForbidden:
		s.Code = http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		s.Code = http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		s.Code = http.StatusRequestEntityTooLarge
	case "":
		s.Reason, s.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	default:
		s.Code = http.StatusUnprocessableEntity
	}
	if s.Details != nil {
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Message: message})
	}
	return status
}
