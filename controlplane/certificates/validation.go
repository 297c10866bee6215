// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// minSeconds is the smallest expirationSeconds.
const minSeconds = 600

// legacySigner is of an older version of the API.
const legacySigner = "kubernetes.io/legacy-unknown"

// validate checks a new request, and one whose metadata is updated.
func validate(r request) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if _, err := parse(r.Spec.Request); err != nil {
		errs = append(errs, field.Invalid(path.Child("request"), r.Spec.Request, err.Error()))
	}
	errs = append(errs, validateUsages(r.Spec.Usages, path.Child("usages"))...)
	if r.Spec.SignerName == legacySigner {
		errs = append(errs, field.Invalid(path.Child("signerName"), r.Spec.SignerName, "the legacy signerName is not allowed via this API version"))
	} else {
		f := valid.At(path, &errs)
		f.SignerName("signerName", r.Spec.SignerName)
	}
	if s := r.Spec.ExpirationSeconds; s != nil && *s < minSeconds {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return errs
}

// parse reads a PKCS #10 request in PEM.
func parse(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

func validateUsages(usages []certificatesv1.KeyUsage, path *field.Path) field.ErrorList {
	if len(usages) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	known, seen := allUsages(), map[certificatesv1.KeyUsage]bool{}
	for i, u := range usages {
		if !known[u] {
			errs = append(errs, field.NotSupported(path.Index(i), u, slices.Sorted(maps.Keys(known))))
		}
		if seen[u] {
			errs = append(errs, field.Duplicate(path.Index(i), u))
		}
		seen[u] = true
	}
	return errs
}

// allUsages are those that a certificate can have.
func allUsages() map[certificatesv1.KeyUsage]bool {
	out := map[certificatesv1.KeyUsage]bool{}
	for u := range keyUsages() {
		out[u] = true
	}
	for u := range extendedUsages() {
		out[u] = true
	}
	return out
}

func validateConditions(r request) field.ErrorList {
	var errs field.ErrorList
	all := field.NewPath("status", "conditions")
	seen := sets.New[certificatesv1.RequestConditionType]()
	for i, c := range r.Status.Conditions {
		path := all.Index(i)
		if c.Type == "" {
			errs = append(errs, field.Required(path.Child("type"), ""))
		}
		supported := sets.New(corev1.ConditionTrue)
		switch c.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
		default:
			supported.Insert(corev1.ConditionFalse, corev1.ConditionUnknown)
		}
		switch {
		case c.Status == "":
			errs = append(errs, field.Required(path.Child("status"), ""))
		case !supported.Has(c.Status):
			errs = append(errs, field.NotSupported(path.Child("status"), c.Status, sets.List(supported)))
		}
		if seen.Has(c.Type) {
			errs = append(errs, field.Duplicate(path.Child("type"), c.Type))
		}
		seen.Insert(c.Type)
	}
	if seen.HasAll(certificatesv1.CertificateApproved, certificatesv1.CertificateDenied) {
		const approved, denied = `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`
		errs = append(errs, field.Invalid(all, "{"+approved+", "+denied+"}", "must specify at most one of: `"+approved+"`, `"+denied+"`"))
	}
	return errs
}

// certificateProblem validates issued certificates in PEM and returns the first problem.
func certificateProblem(text []byte) string {
	count := 0
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		switch {
		case block.Type != pemCertificate:
			return fmt.Sprintf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		case len(block.Headers) > 0:
			return "no PEM block headers are permitted"
		}
		found, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err.Error()
		}
		if len(found) == 0 {
			return "found CERTIFICATE PEM block containing 0 certificates"
		}
		count, text = count+len(found), bytes.TrimSpace(rest)
	}
	if count == 0 {
		return "must contain at least one CERTIFICATE PEM block"
	}
	return ""
}
