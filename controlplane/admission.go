// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/namespace"
	"github.com/steer-dev/steer/controlplane/quota"
)

// admissions returns the chain of the plane, in the order of Kubernetes: what
// resolves accounts, classes and limits, then the caller's own, and last the
// quotas, which are charged for what all others admit. allocator gives Services
// their addresses, refusal looks after definitions.
func (p *Plane) admissions(accounts, allocator, refusal, escalation resource.Admission, charges *quota.Ledger) resource.Admission {
	var chain resource.Admissions
	if p.options.has("NamespaceLifecycle") {
		chain = append(chain, namespace.Lifecycle{Store: p.store})
	}
	if p.options.has("ServiceAccount") {
		chain = append(chain, resource.Restrict(accounts, "pods"))
	}
	chain = append(chain, admission.Chain(p.store, p.options.Disable...)...)
	chain = append(chain,
		resource.Restrict(certificates.Admission{Authorizer: p.authorizer, Disable: p.options.Disable}, "certificatesigningrequests.certificates.k8s.io"),
		resource.Restrict(allocator, "services"), resource.Restrict(podspec.AppArmor{}, "pods"), refusal)
	if p.options.Admission != nil {
		chain = append(chain, thawing{p.options.Admission})
	}
	chain = append(chain, resource.Restrict(escalation,
		"roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
		"rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"))
	if p.options.has("ResourceQuota") {
		chain = append(chain, quota.NewAdmission(p.store, p.send, charges))
	}
	return chain
}

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
