// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// NewAuthority returns an authority of that common name, which signs its own certificate.
func NewAuthority(signer crypto.Signer, serial *big.Int, name string, from, to time.Time) (Authority, error) {
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return Authority{}, fmt.Errorf("controlplane: sign the certificate authority: %w", err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return Authority{}, fmt.Errorf("controlplane: sign the certificate authority: %w", err)
	}
	return Authority{Certificate: ca, Signer: signer}, nil
}
