// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesservice

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
)

// Leases is the admission of Leases that keeps where an API server is, and when it was
// there last, from all other users: the Service "kubernetes" leads Pods and their
// credentials to those addresses, and to write Leases is a common right. A user who may
// can delete them; a server writes its own again.
type Leases struct{ resource.ValidatesOnly }

var _ resource.Admission = Leases{}

// Component returns the admission as a part of a control plane.
func (l Leases) Component() component.Component {
	return component.Component{Name: "leases of servers", Admission: l, For: []string{"leases.coordination.k8s.io"}}
}

// Validate implements [resource.Admission].
func (Leases) Validate(_ context.Context, r *resource.AdmissionRequest) error {
	lease, ok := r.Object.(*coordinationv1.Lease)
	if !ok || r.User != nil && r.User.Name == step.APIServer {
		return nil
	}
	old, ok := r.Old.(*coordinationv1.Lease)
	if !ok {
		old = &coordinationv1.Lease{}
	}
	is, was := lease.Annotations[addressKey], old.Annotations[addressKey]
	if is == was && (is == "" || equality.Semantic.DeepEqual(lease.Spec, old.Spec)) {
		return nil
	}
	return admission.Forbidden(r, "the annotation %s of a Lease, and the spec of a Lease with it, are written by API servers alone: take it away from yours", addressKey)
}
