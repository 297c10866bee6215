// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"slices"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// podRequest is a PodCertificateRequest (KEP-4317).
type podRequest = *certificatesv1.PodCertificateRequest

const podPlural = "podcertificaterequests"

// Bounds of requests: bytes, and seconds.
const (
	largestUID      = 128
	largestStub     = 10 << 10
	shortestLife    = 3600
	longestPodLife  = 91 * 24 * 3600
	longestOwnLife  = 24 * 3600 // for the signers of Kubernetes
	defaultLifetime = 24 * 3600
)

var podRequests = sync.OnceValue(func() *resource.Resource {
	doc := certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()
	return kind.Definition[certificatesv1.PodCertificateRequest, podRequest]{
		Group: certificatesv1.GroupName, Version: "v1", Plural: podPlural, Status: true,
		Metadata:       kind.Metadata{KeepMetadataInStatus: true},
		Defaults:       func(r podRequest) { kind.Fill(&r.Spec.MaxExpirationSeconds, int32(defaultLifetime)) },
		Validate:       validatePodRequest,
		ValidateStatus: validatePodStatus,
		Columns: described(kind.Columns("Name", "PodName", "ServiceAccountName", "NodeName", "SignerName", "State", "UnverifiedUserAnnotations"), map[string]string{
			"PodName": doc["podName"], "ServiceAccountName": doc["serviceAccountName"], "NodeName": doc["nodeName"], "SignerName": doc["signerName"],
			"State":                     "Is the request Pending, Issued, Denied, or Failed?",
			"UnverifiedUserAnnotations": doc["unverifiedUserAnnotations"],
		}),
		Row: func(r podRequest) []any {
			return []any{
				r.Name, r.Spec.PodName, r.Spec.ServiceAccountName, string(r.Spec.NodeName), r.Spec.SignerName, podState(r),
				labels.FormatLabels(r.Spec.UnverifiedUserAnnotations),
			}
		},
		Selectable: []kind.Selectable[podRequest]{
			kind.Leaf("spec.signerName", func(r podRequest) string { return r.Spec.SignerName }),
			kind.Leaf("spec.podName", func(r podRequest) string { return r.Spec.PodName }),
			kind.Leaf("spec.nodeName", func(r podRequest) string { return string(r.Spec.NodeName) }),
		},
	}.Resource()
})

// podState is the column State.
func podState(r podRequest) string {
	state := "Pending"
	for _, c := range r.Status.Conditions {
		if slices.Contains(outcomes(), c.Type) {
			state = c.Type
		}
	}
	return state
}

// signed requires the permission to sign of users who change the status of a
// PodCertificateRequest.
type signed struct {
	resource.Strategy
	permission
}

// Validate implements [resource.Strategy].
func (s signed) Validate(ctx context.Context, obj, old resource.Object) field.ErrorList {
	errs := s.Strategy.Validate(ctx, obj, old)
	now, before := obj.(podRequest), old.(podRequest)
	r := resource.RequestFrom(ctx)
	if len(errs) > 0 || r == nil || sameStatus(now, before) {
		return errs
	}
	path, signer := field.NewPath("spec", "signerName"), before.Spec.SignerName
	switch allowed, err := s.allows(ctx, r.User, "sign", signer); {
	case err != nil:
		return field.ErrorList{field.InternalError(path, fmt.Errorf("cannot find out whether the user may sign for the signer %q: %w", signer, err))}
	case !allowed:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("User %q is not permitted to \"sign\" for signer %q", r.User.Name, signer))}
	}
	return nil
}

// validatePodRequest checks a new request, and that an update leaves what it asks for.
func validatePodRequest(r, old podRequest) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	if old != nil {
		root.Unchanged("spec", r.Spec, old.Spec)
		return errs
	}
	f, spec := root.Child("spec"), &r.Spec
	f.SignerName("signerName", spec.SignerName)
	f.UserAnnotations("unverifiedUserAnnotations", spec.UnverifiedUserAnnotations)
	for _, of := range []struct{ object, name, uid string }{
		{"pod", spec.PodName, string(spec.PodUID)},
		{"serviceAccount", spec.ServiceAccountName, string(spec.ServiceAccountUID)},
		{"node", string(spec.NodeName), string(spec.NodeUID)},
	} {
		f.Subdomain(of.object+"Name", of.name)
		switch {
		case of.uid == "":
			f.Invalid(of.object+"UID", of.uid, "must not be empty")
		case len(of.uid) > largestUID:
			f.TooLong(of.object+"UID", largestUID)
		}
	}
	longest := int32(longestPodLife)
	if valid.IsKubernetesSigner(spec.SignerName) {
		longest = longestOwnLife
	}
	if s := *spec.MaxExpirationSeconds; s < shortestLife || s > longest {
		f.Invalid("maxExpirationSeconds", s, fmt.Sprintf("must be in the range [%d, %d]", shortestLife, longest))
	}
	if len(spec.StubPKCS10Request) == 0 {
		f.Invalid(valid.Self, field.OmitValueType{}, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")
		return errs
	}
	checkStub(&f, "stubPKCS10Request", spec.StubPKCS10Request)
	return errs
}

// checkStub checks a PKCS #10 request, of which nothing but the key and the signature matters.
func checkStub(f *valid.Field, name string, der []byte) {
	if len(der) > largestStub {
		f.TooLong(name, largestStub)
		return
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		f.Invalid(name, field.OmitValueType{}, "must be a valid PKCS#10 CSR")
		return
	}
	switch key := request.PublicKey.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() && key.Curve != elliptic.P521() {
			f.Invalid(name, "curve "+key.Curve.Params().Name, "elliptic public keys must use curve P256, P384, or P521")
			return
		}
	case *rsa.PublicKey:
		if bits := key.Size() * 8; bits != 3072 && bits != 4096 {
			f.Invalid(name, fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096")
			return
		}
	default:
		f.Invalid(name, field.OmitValueType{}, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")
		return
	}
	if request.CheckSignature() != nil {
		f.Invalid(name, field.OmitValueType{}, "invalid signature")
	}
}
