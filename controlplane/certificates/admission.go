// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/component"
)

// Plugins returns the admission plugins for certificates, in the order of kube-apiserver: a
// user who approves must have the permission to approve for the signer, one who signs the
// permission to sign for it, one who writes its trust bundle the permission to attest for it,
// and certificates of system:masters are refused.
func Plugins(d component.Deps) component.List {
	p := permission{authorizer: d.Authorizer}
	return component.List{
		component.Plugin("CertificateApproval", approval{permission: p}, plural+"."+certificatesv1.GroupName),
		component.Plugin("CertificateSigning", signing{permission: p}, plural+"."+certificatesv1.GroupName),
		component.Plugin("ClusterTrustBundleAttest", attest{permission: p}, bundles+"."+certificatesv1.GroupName),
		component.Plugin("CertificateSubjectRestriction", subject{}, plural+"."+certificatesv1.GroupName),
	}
}

// approval requires the permission to approve.
type approval struct {
	resource.ValidatesOnly
	permission
}

// Validate implements [resource.Admission].
func (a approval) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	if r.Operation != resource.Update || r.Subresource != "approval" {
		return nil
	}
	return a.requireForRequest(ctx, r, "approve")
}

// signing requires the permission to sign of users who write the certificate or a
// condition.
type signing struct {
	resource.ValidatesOnly
	permission
}

// Validate implements [resource.Admission].
func (s signing) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	if r.Operation != resource.Update || r.Subresource != "status" {
		return nil
	}
	now, old := r.Object.(request), r.Old.(request)
	if slices.Equal(old.Status.Certificate, now.Status.Certificate) && slices.Equal(old.Status.Conditions, now.Status.Conditions) {
		return nil
	}
	return s.requireForRequest(ctx, r, "sign")
}

// attest requires the permission to attest of users who write the trust bundle of a signer.
type attest struct {
	resource.ValidatesOnly
	permission
}

// Validate implements [resource.Admission].
func (a attest) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	obj, ok := r.Object.(bundle)
	if !ok || obj.Spec.SignerName == "" || admission.OnlyCollected(r) {
		return nil
	}
	return a.require(ctx, r, "attest", obj.Spec.SignerName, "user not permitted to attest for signerName %q")
}

// subject refuses requests for certificates of system:masters: their permissions cannot be
// revoked.
type subject struct{ resource.ValidatesOnly }

// Validate implements [resource.Admission].
func (subject) Validate(_ context.Context, r *resource.AdmissionRequest) error {
	obj, ok := r.Object.(request)
	if !ok || r.Operation != resource.Create || r.Subresource != "" || obj.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	csr, err := parse(obj.Spec.Request)
	if err != nil {
		return admission.Forbidden(r, "unable to parse csr: %w", err)
	}
	if slices.Contains(csr.Subject.Organization, auth.Masters) {
		return admission.Forbidden(r, "use of %s signer with %s group is not allowed", obj.Spec.SignerName, auth.Masters)
	}
	return nil
}

// permission requires permissions for signers.
type permission struct{ authorizer auth.Authorizer }

// requireForRequest refuses users without the permission for a verb on the signer of the
// updated request.
func (p permission) requireForRequest(ctx context.Context, r *resource.AdmissionRequest, verb string) error {
	return p.require(ctx, r, verb, r.Old.(request).Spec.SignerName, "user not permitted to "+verb+" requests with signerName %q")
}

// require refuses users without the permission for a verb on a signer. The refusal is a format
// for the name of the signer.
func (p permission) require(ctx context.Context, r *resource.AdmissionRequest, verb, signer, refusal string) error {
	allowed, err := p.allows(ctx, r.User, verb, signer)
	switch {
	case err != nil:
		return admission.Forbidden(r, "cannot find out whether the user may %s for the signer %q: %w", verb, signer, err)
	case !allowed:
		return admission.Forbidden(r, refusal, signer)
	}
	return nil
}

// allows reports whether a user has the permission for a verb on a signer, or on all of its
// domain.
func (p permission) allows(ctx context.Context, user *auth.User, verb, signer string) (bool, error) {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, _, err := p.authorizer.Authorize(ctx, &auth.Attributes{
			User: user, Verb: verb, ResourceRequest: true,
			Group: certificatesv1.GroupName, Version: "*", Resource: "signers", Name: name,
		})
		if decision == auth.Allow || err != nil {
			return decision == auth.Allow, err
		}
	}
	return false, nil
}
