// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"time"
)

// Pass is one of the two passes of an [Admission].
type Pass int

// The passes.
const (
	MutatingPass Pass = iota
	ValidatingPass
)

// Observer is told how long a pass of an admission took, and how it ended. It is called by
// many requests at once.
type Observer func(pass Pass, r *AdmissionRequest, took time.Duration, err error)

// Observe returns an admission whose passes are observed, but for one that it does not
// have: see [ValidatesOnly] and [MutatesOnly].
func Observe(a Admission, observer Observer) Admission {
	o := observed{Admission: a, observer: observer, mutates: true, validates: true}
	if one, ok := a.(interface{ only() Pass }); ok {
		o.mutates, o.validates = one.only() == MutatingPass, one.only() == ValidatingPass
	}
	return o
}

// observed is the result of [Observe].
type observed struct {
	Admission
	observer           Observer
	mutates, validates bool
}

// Admit implements [Admission].
func (o observed) Admit(ctx context.Context, r *AdmissionRequest) error {
	if !o.mutates {
		return nil
	}
	began := time.Now()
	err := o.Admission.Admit(ctx, r)
	o.observer(MutatingPass, r, time.Since(began), err)
	return err
}

// Mutates implements [Mutator].
func (o observed) Mutates(r *AdmissionRequest) bool { return o.mutates && Mutates(o.Admission, r) }

// Validate implements [Admission].
func (o observed) Validate(ctx context.Context, r *AdmissionRequest) error {
	if !o.validates {
		return nil
	}
	began := time.Now()
	err := o.Admission.Validate(ctx, r)
	o.observer(ValidatingPass, r, time.Since(began), err)
	return err
}
