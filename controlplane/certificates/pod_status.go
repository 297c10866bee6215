// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// Bounds of what is issued to Pods.
const (
	largestChain = 100 << 10
	// allowedSkew is how far the begin of a certificate may be from the time of the server.
	allowedSkew = 5 * time.Minute
	// refreshMargin is how far the refresh has to be from both ends of a certificate.
	refreshMargin = 10 * time.Minute
)

const (
	issued = certificatesv1.PodCertificateRequestConditionTypeIssued
	denied = certificatesv1.PodCertificateRequestConditionTypeDenied
	failed = certificatesv1.PodCertificateRequestConditionTypeFailed
)

// outcomes are the conditions that end a request.
func outcomes() []string { return []string{issued, denied, failed} }

// outcome is the condition that a request has ended with; empty: it has not.
func outcome(r podRequest) string {
	for _, t := range outcomes() {
		if meta.IsStatusConditionTrue(r.Status.Conditions, t) {
			return t
		}
	}
	return ""
}

func sameStatus(a, b podRequest) bool { return equality.Semantic.DeepEqual(a.Status, b.Status) }

// validatePodStatus checks what a signer writes: one of three outcomes, once, and a chain of
// certificates with the outcome Issued.
func validatePodStatus(r, old podRequest) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f := root.Child("status")
	if checkOutcomes(&f, r.Status.Conditions); len(errs) > 0 {
		return errs
	}
	unchanged := func(same bool, detail string) {
		if !same {
			root.Invalid("status", field.OmitValueType{}, detail)
		}
	}
	if outcome(old) != "" {
		unchanged(sameStatus(r, old), "immutable after PodCertificateRequest is issued, denied, or failed")
		return errs
	}
	switch outcome(r) {
	case denied, failed:
		alone := certificatesv1.PodCertificateRequestStatus{Conditions: r.Status.Conditions}
		unchanged(equality.Semantic.DeepEqual(r.Status, alone), "non-condition status fields must be empty when denying or failing the PodCertificateRequest")
	case issued:
		checkIssued(&f, &r.Status, old)
	default:
		unchanged(sameStatus(r, old), `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
	}
	return errs
}

func checkOutcomes(f *valid.Field, conditions []metav1.Condition) {
	list, found := f.Child("conditions"), false
	for i := range conditions {
		c := &conditions[i]
		at := list.Child(fmt.Sprintf("[%d]", i)) // not Index: Kubernetes has a dot before it
		if !slices.Contains(outcomes(), c.Type) {
			valid.NotSupported(&at, "type", c.Type, issued, denied, failed)
			continue
		}
		if found {
			at.Invalid("type", c.Type, `There may be at most one condition with type "Issued", "Denied", or "Failed"`)
		}
		found = true
		if c.Status != metav1.ConditionTrue {
			valid.NotSupported(&at, "status", c.Status, metav1.ConditionTrue)
		}
	}
	f.Add(metavalidation.ValidateConditions(conditions, f.PathOf("conditions"))...)
}

// checkIssued checks the certificates of a request, and what is said of the first of them. It
// stops at the first problem.
func checkIssued(f *valid.Field, status *certificatesv1.PodCertificateRequestStatus, r podRequest) {
	before := f.Len()
	leaf, rest := checkLeaf(f, status.CertificateChain, r.Spec.StubPKCS10Request)
	if leaf == nil {
		return
	}
	if checkTimes(f, status, leaf, *r.Spec.MaxExpirationSeconds); f.Len() > before {
		return
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return
		}
		if block.Type != pemCertificate {
			f.Invalid("certificateChain", status.CertificateChain, "issued certificate chain must consist entirely of CERTFICATE PEM blocks")
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			f.Invalid("certificateChain", status.CertificateChain, "intermediate certificate does not parse as valid X.509")
			return
		}
	}
}

// checkLeaf returns the first certificate of a chain, and the text after it; nil if it is none
// that the request asked for.
func checkLeaf(f *valid.Field, chain string, stub []byte) (*x509.Certificate, []byte) {
	const name = "certificateChain"
	refuse := func(detail string) (*x509.Certificate, []byte) {
		f.Invalid(name, chain, detail)
		return nil, nil
	}
	if len(chain) > largestChain {
		f.TooLong(name, largestChain)
		return nil, nil
	}
	block, rest := pem.Decode([]byte(chain))
	if block == nil {
		return refuse("issued certificate chain must contain at least one certificate")
	}
	if block.Type != pemCertificate {
		return refuse("issued certificate chain must consist entirely of CERTIFICATE PEM blocks")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return refuse("leaf certificate does not parse as valid X.509")
	}
	checkAlternatives(f, name, leaf)
	request, err := x509.ParseCertificateRequest(stub)
	if err != nil {
		path := field.NewPath("spec", "stubPKCS10Request")
		f.Add(field.Invalid(path, field.OmitValueType{}, "must be a valid PKCS#10 CSR"))
		return nil, nil
	}
	if key, ok := request.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); ok && !key.Equal(leaf.PublicKey) {
		return refuse("leaf certificate was not issued to the requested public key")
	}
	return leaf, rest
}

// checkAlternatives checks the names of a certificate that x509 reads and others do not.
func checkAlternatives(f *valid.Field, name string, leaf *x509.Certificate) {
	for _, dns := range leaf.DNSNames {
		if dns == "" {
			f.Invalid(name, dns, "leaf certificate should not contain empty DNSName")
		}
		if strings.Contains(dns, "..") {
			f.Invalid(name, dns, "leaf certificate's DNSName should not contain '..'")
		}
		if strings.HasPrefix(dns, ".") || strings.HasSuffix(dns, ".") {
			f.Invalid(name, dns, "leaf certificate's DNSName should not start or end with '.'")
		}
	}
	for _, address := range leaf.EmailAddresses {
		if _, err := mail.ParseAddress(address); err != nil {
			f.Invalid(name, address, "leaf certificate should not contain invalid EmailAddress")
		}
	}
}

// checkTimes compares the times of a status with those of the certificate, up to the first
// that is wrong. longest is in seconds.
func checkTimes(f *valid.Field, status *certificatesv1.PodCertificateRequestStatus, leaf *x509.Certificate, longest int32) {
	missing := false
	for _, t := range []struct {
		name, detail string
		time         *metav1.Time
	}{
		{"notBefore", "must be present and consistent with the issued certificate", status.NotBefore},
		{"notAfter", "must be present and consistent with the issued certificate", status.NotAfter},
		{"beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]", status.BeginRefreshAt},
	} {
		if t.time == nil {
			missing = true
			f.Required(t.name, t.detail)
		}
	}
	if missing {
		return
	}
	begin, end, refresh := status.NotBefore.Time, status.NotAfter.Time, status.BeginRefreshAt.Time
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	switch {
	case !begin.Equal(leaf.NotBefore):
		f.Invalid("notBefore", begin, "must be set to the NotBefore time encoded in the leaf certificate")
	case time.Since(begin).Abs() >= allowedSkew:
		f.Invalid("notBefore", begin, "must be set to within 5 minutes of kube-apiserver's current time")
	case !end.Equal(leaf.NotAfter):
		f.Invalid("notAfter", end, "must be set to the NotAfter time encoded in the leaf certificate")
	case life < shortestLife*time.Second:
		f.Invalid("certificateChain", life, "leaf certificate lifetime must be >= 1 hour")
	case life > time.Duration(longest)*time.Second:
		f.Invalid("certificateChain", life, fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%v)", longest))
	case refresh.Before(begin.Add(refreshMargin)):
		f.Invalid("beginRefreshAt", refresh, "must be at least 10 minutes after status.notBefore")
	case refresh.After(end.Add(-refreshMargin)):
		f.Invalid("beginRefreshAt", refresh, "must be at least 10 minutes before status.notAfter")
	}
}
