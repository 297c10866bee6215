// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Authority signs certificates.
type Authority struct {
	// Certificate of the authority.
	Certificate *x509.Certificate
	// Signer is its private key.
	Signer crypto.Signer
}

// Lives of certificates.
const (
	// longestLife is how long certificates are valid at most.
	longestLife = 365 * 24 * time.Hour
	// clockSkew is how far back certificates are valid, for clients whose clock
	// is behind.
	clockSkew = 5 * time.Minute
)

// The subject of nodes.
const (
	nodePrefix = "system:node:"
	nodeGroup  = "system:nodes"
)

// signs reports whether this package implements a signer.
func signs(signer string) bool {
	switch signer {
	case certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.KubeletServingSignerName, legacySigner:
		return true
	}
	return false
}

// check validates a request by the rules of its signer.
func check(signer string, csr *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	if err := csr.CheckSignature(); err != nil {
		return fmt.Errorf("the request is not signed with the key that it names: %w", err)
	}
	names := len(csr.DNSNames) + len(csr.IPAddresses)
	others := len(csr.EmailAddresses) + len(csr.URIs)
	switch signer {
	case certificatesv1.KubeAPIServerClientSignerName:
		return checkUsages(usages, certificatesv1.UsageClientAuth)
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		if names+others > 0 {
			return errors.New("certificates of nodes as clients have no subject alternative names")
		}
		return errors.Join(checkNode(csr), checkUsages(usages, certificatesv1.UsageClientAuth))
	case certificatesv1.KubeletServingSignerName:
		if names == 0 || others > 0 {
			return errors.New("serving certificates of nodes have DNS names or IP addresses, and no other subject alternative names")
		}
		return errors.Join(checkNode(csr), checkUsages(usages, certificatesv1.UsageServerAuth))
	}
	return nil
}

// checkNode refuses subjects other than nodes.
func checkNode(csr *x509.CertificateRequest) error {
	if !slices.Equal(csr.Subject.Organization, []string{nodeGroup}) {
		return fmt.Errorf("subject organization is not %s", nodeGroup)
	}
	if !strings.HasPrefix(csr.Subject.CommonName, nodePrefix) {
		return fmt.Errorf("subject common name does not begin with %s", nodePrefix)
	}
	return nil
}

// checkUsages requires one extended usage, and allows the key usages that go with
// it.
func checkUsages(usages []certificatesv1.KeyUsage, needed certificatesv1.KeyUsage) error {
	if !slices.Contains(usages, needed) {
		return fmt.Errorf("usages lack %q", needed)
	}
	for _, u := range usages {
		switch u {
		case needed, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return fmt.Errorf("usage %q is not certified by this signer", u)
		}
	}
	return nil
}

// issue returns the certificate for a request, in PEM.
func (a *Authority) issue(r request, csr *x509.CertificateRequest, now time.Time) ([]byte, error) {
	life := longestLife
	if s := r.Spec.ExpirationSeconds; s != nil {
		life = min(life, time.Duration(*s)*time.Second)
	}
	end := now.Add(life)
	if end.After(a.Certificate.NotAfter) {
		end = a.Certificate.NotAfter
	}
	// The serial number follows from the request, so that a retry issues the same one, and
	// every run with the same entropy.
	sum := sha256.Sum256(append([]byte(r.UID), csr.Raw...))
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(sum[:16]), RawSubject: csr.RawSubject,
		DNSNames: csr.DNSNames, IPAddresses: csr.IPAddresses, EmailAddresses: csr.EmailAddresses, URIs: csr.URIs,
		NotBefore: now.Add(-clockSkew), NotAfter: end, BasicConstraintsValid: true,
	}
	keys, extended := keyUsages(), extendedUsages()
	for _, u := range slices.Sorted(slices.Values(r.Spec.Usages)) {
		template.KeyUsage |= keys[u]
		if e, ok := extended[u]; ok && !slices.Contains(template.ExtKeyUsage, e) {
			template.ExtKeyUsage = append(template.ExtKeyUsage, e)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, csr.PublicKey, a.Signer)
	if err != nil {
		return nil, fmt.Errorf("certificates: sign for %s: %w", r.Name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}), nil
}

// keyUsages are the usages of RFC 5280 §4.2.1.3.
func keyUsages() map[certificatesv1.KeyUsage]x509.KeyUsage {
	return map[certificatesv1.KeyUsage]x509.KeyUsage{
		certificatesv1.UsageSigning:           x509.KeyUsageDigitalSignature,
		certificatesv1.UsageDigitalSignature:  x509.KeyUsageDigitalSignature,
		certificatesv1.UsageContentCommitment: x509.KeyUsageContentCommitment,
		certificatesv1.UsageKeyEncipherment:   x509.KeyUsageKeyEncipherment,
		certificatesv1.UsageKeyAgreement:      x509.KeyUsageKeyAgreement,
		certificatesv1.UsageDataEncipherment:  x509.KeyUsageDataEncipherment,
		certificatesv1.UsageCertSign:          x509.KeyUsageCertSign,
		certificatesv1.UsageCRLSign:           x509.KeyUsageCRLSign,
		certificatesv1.UsageEncipherOnly:      x509.KeyUsageEncipherOnly,
		certificatesv1.UsageDecipherOnly:      x509.KeyUsageDecipherOnly,
	}
}

// extendedUsages are the usages of RFC 5280 §4.2.1.12, and two older ones.
func extendedUsages() map[certificatesv1.KeyUsage]x509.ExtKeyUsage {
	return map[certificatesv1.KeyUsage]x509.ExtKeyUsage{
		certificatesv1.UsageAny:             x509.ExtKeyUsageAny,
		certificatesv1.UsageServerAuth:      x509.ExtKeyUsageServerAuth,
		certificatesv1.UsageClientAuth:      x509.ExtKeyUsageClientAuth,
		certificatesv1.UsageCodeSigning:     x509.ExtKeyUsageCodeSigning,
		certificatesv1.UsageEmailProtection: x509.ExtKeyUsageEmailProtection,
		certificatesv1.UsageSMIME:           x509.ExtKeyUsageEmailProtection,
		certificatesv1.UsageIPsecEndSystem:  x509.ExtKeyUsageIPSECEndSystem,
		certificatesv1.UsageIPsecTunnel:     x509.ExtKeyUsageIPSECTunnel,
		certificatesv1.UsageIPsecUser:       x509.ExtKeyUsageIPSECUser,
		certificatesv1.UsageTimestamping:    x509.ExtKeyUsageTimeStamping,
		certificatesv1.UsageOCSPSigning:     x509.ExtKeyUsageOCSPSigning,
		certificatesv1.UsageMicrosoftSGC:    x509.ExtKeyUsageMicrosoftServerGatedCrypto,
		certificatesv1.UsageNetscapeSGC:     x509.ExtKeyUsageNetscapeServerGatedCrypto,
	}
}
