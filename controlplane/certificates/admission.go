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
)

// Names of the admission plugins.
const (
	ApprovalPlugin = "CertificateApproval"
	SigningPlugin  = "CertificateSigning"
	SubjectPlugin  = "CertificateSubjectRestriction"
)

// Admission is the three plugins for requests: who approves must have the
// permission to approve for their signer, who answers the permission to sign for
// it, and certificates of system:masters are refused.
type Admission struct {
	// Authorizer is asked for the permissions.
	Authorizer auth.Authorizer
	// Disable lists the plugins to leave out.
	Disable []string
}

var (
	_ resource.Admission = Admission{}
	_ resource.Mutator   = Admission{}
)

// Admit implements [resource.Admission]: requests stay as they are.
func (Admission) Admit(context.Context, *resource.AdmissionRequest) error { return nil }

// Mutates implements [resource.Mutator].
func (Admission) Mutates(*resource.AdmissionRequest) bool { return false }

// Validate implements [resource.Admission].
func (a Admission) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	obj, ok := r.Object.(request)
	if !ok {
		return nil
	}
	switch {
	case r.Operation == resource.Create && r.Subresource == "" && a.on(SubjectPlugin):
		return restrictSubject(r, obj)
	case r.Operation == resource.Update && r.Subresource == "approval" && a.on(ApprovalPlugin):
		return a.may(ctx, r, "approve")
	case r.Operation == resource.Update && r.Subresource == "status" && a.on(SigningPlugin):
		if old, ok := r.Old.(request); ok && slices.Equal(old.Status.Certificate, obj.Status.Certificate) && slices.Equal(old.Status.Conditions, obj.Status.Conditions) {
			return nil
		}
		return a.may(ctx, r, "sign")
	}
	return nil
}

func (a Admission) on(plugin string) bool { return !slices.Contains(a.Disable, plugin) }

// restrictSubject refuses requests for certificates of masters: their power
// cannot be taken back.
func restrictSubject(r *resource.AdmissionRequest, obj request) error {
	if obj.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
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

// may refuses users without the permission for a verb on the signer of the
// request, or on all of its domain.
func (a Admission) may(ctx context.Context, r *resource.AdmissionRequest, verb string) error {
	signer := r.Old.(request).Spec.SignerName
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, _, err := a.Authorizer.Authorize(ctx, &auth.Attributes{
			User: r.User, Verb: verb, ResourceRequest: true,
			Group: certificatesv1.GroupName, Version: "*", Resource: "signers", Name: name,
		})
		if decision == auth.Allow {
			return nil
		}
		if err != nil {
			return admission.Forbidden(r, "cannot find out whether the user may %s for the signer %q: %w", verb, signer, err)
		}
	}
	return admission.Forbidden(r, "user not permitted to %s requests with signerName %q", verb, signer)
}
