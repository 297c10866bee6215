// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
)

// Validating is the plugin ValidatingAdmissionWebhook.
type Validating struct {
	resource.ValidatesOnly
	caller
	d     *match.Deps
	hooks configurations
}

var _ resource.Admission = (*Validating)(nil)

// planned is a call of one hook.
type planned struct {
	hook *hook
	as   match.Invocation
	form *form
}

// Validate implements [resource.Admission]. All webhooks are called at once; of several
// that refuse, the first in the order of the configurations answers.
func (p *Validating) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	index, err := p.hooks.current()
	if err != nil {
		return err
	}
	candidates := index.Candidates(r)
	if len(candidates) == 0 {
		return nil
	}
	q := match.NewRequest(r, p.d)
	calls, err := plan(ctx, q, candidates)
	if err != nil || len(calls) == 0 {
		return err
	}
	if ctx.Err() != nil {
		return errRequestTimeout()
	}
	errs := make([]error, len(calls))
	one := func(i int) {
		begun := time.Now()
		c := &calls[i]
		_, err := p.call(ctx, c.hook, q, c.as, c.form)
		errs[i] = p.settle(ctx, c.hook, q, fmt.Sprintf("validating.webhook.admission.k8s.io/round_0_index_%d", i), begun, err)
	}
	var others sync.WaitGroup
	for i := 1; i < len(calls); i++ {
		others.Go(func() { one(i) })
	}
	one(0)
	others.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// plan finds the hooks that match a request, and encodes its objects once for each kind
// that they want.
func plan(ctx context.Context, q *match.Request, candidates []*hook) ([]planned, error) {
	var calls []planned
	forms := map[schema.GroupVersionKind]*form{}
	for _, h := range candidates {
		as, ok, err := matches(ctx, q, h)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		f := forms[as.Kind]
		if f == nil {
			if f, err = encoded(ctx, q, as.Kind); err != nil {
				return nil, err
			}
			forms[as.Kind] = f
		}
		calls = append(calls, planned{h, as, f})
	}
	return calls, nil
}

// matches reports whether a hook is to be called for a request. An error is an API status.
func matches(ctx context.Context, q *match.Request, h *hook) (match.Invocation, bool, error) {
	as, ok, err := h.constraints.Matches(ctx, q)
	if err != nil || !ok {
		return as, false, err
	}
	ok, err = h.conditions.Match(ctx, q, as, nil)
	if err != nil {
		return as, false, apierrors.NewForbidden(q.GVR.GroupResource(), q.Name, err)
	}
	return as, ok, nil
}

// encoded returns the objects of a request in a kind.
func encoded(ctx context.Context, q *match.Request, kind schema.GroupVersionKind) (*form, error) {
	form, err := q.As(ctx, kind)
	if err != nil {
		return nil, err
	}
	f, err := encodeForm(form.Object, form.OldObject, q.Attributes().GetOperationOptions())
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &f, nil
}
