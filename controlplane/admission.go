// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"github.com/steer-dev/steer/apiserver/resource"
)

// thawing shows an admission objects that it can look into. The plane's own admissions do
// not look into custom resources.
type thawing struct{ resource.Admission }

// Mutates implements [resource.Mutator].
func (t thawing) Mutates(r *resource.AdmissionRequest) bool {
	return resource.Mutates(t.Admission, t.thaw(r))
}

// Admit implements [resource.Admission].
func (t thawing) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	return t.Admission.Admit(ctx, t.thaw(r))
}

// Validate implements [resource.Admission].
func (t thawing) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	return t.Admission.Validate(ctx, t.thaw(r))
}

func (thawing) thaw(r *resource.AdmissionRequest) *resource.AdmissionRequest {
	resource.DecodeObject(r.Object)
	resource.DecodeObject(r.Old)
	return r
}
