// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"github.com/steer-dev/steer/apiserver/resource"
)

// decoding shows an admission objects that it can look into. The plane's own admissions do
// not look into custom resources.
type decoding struct{ resource.Admission }

// Mutates implements [resource.Mutator].
func (t decoding) Mutates(r *resource.AdmissionRequest) bool {
	return resource.Mutates(t.Admission, t.decode(r))
}

// Admit implements [resource.Admission].
func (t decoding) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	return t.Admission.Admit(ctx, t.decode(r))
}

// Validate implements [resource.Admission].
func (t decoding) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	return t.Admission.Validate(ctx, t.decode(r))
}

func (decoding) decode(r *resource.AdmissionRequest) *resource.AdmissionRequest {
	resource.DecodeObject(r.Object)
	resource.DecodeObject(r.Old)
	return r
}
