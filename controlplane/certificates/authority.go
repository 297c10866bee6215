// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
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

// How long certificates of the control plane itself are valid, and how far back: for clients whose
// clock is behind.
const (
	ownLife = 365 * 24 * time.Hour
	ownSkew = time.Hour
)

// Issue signs a certificate of the control plane for a new key. Hosts are names and IP addresses.
// It is valid for a year, or as long as that of the authority.
func (a Authority) Issue(subject pkix.Name, hosts []string, usages ...x509.ExtKeyUsage) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("controlplane: make a key: %w", err)
	}
	serial, err := NewSerial()
	if err != nil {
		return tls.Certificate{}, err
	}
	id, err := keyID(key.Public())
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: subject, SubjectKeyId: id,
		NotBefore: now.Add(-ownSkew), NotAfter: now.Add(ownLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages,
		BasicConstraintsValid: true,
	}
	if template.NotAfter.After(a.Certificate.NotAfter) {
		template.NotAfter = a.Certificate.NotAfter
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key.Public(), a.Signer)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("controlplane: sign a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("controlplane: sign a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// keyID returns the identifier of a public key (RFC 7093, section 2, method 4).
func keyID(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("controlplane: encode a public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return sum[:20], nil
}

// NewSerial returns a random serial number of a certificate.
func NewSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("controlplane: make a serial number: %w", err)
	}
	return serial, nil
}
