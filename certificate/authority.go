// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	// authorityFor is how long the certificate of an authority is valid. Its successor
	// is announced when a third of that is left.
	authorityFor = 365 * 24 * time.Hour
	// issuedFor is how long a certificate of a server is valid; it is issued anew when a
	// third of that is left.
	issuedFor = 30 * 24 * time.Hour
	// Overlap is how long a successor is announced, and so trusted, before it signs.
	Overlap = 24 * time.Hour
	// backdated allows for clocks that are behind.
	backdated = time.Hour
)

// The keys of the Secret of an authority.
const (
	bundleKey = "ca.crt"   // all certificates that are to be trusted: the signing one first
	signerKey = "ca.key"   // the private key that signs
	nextKey   = "next.key" // that of the announced successor
)

// Authority is a certificate authority that several replicas share by a Secret. It
// signs with one key, may have announced the next, and goes on trusting the former
// until they expire. It is a value: its methods return what it becomes.
type Authority struct {
	signer  pair
	next    pair
	retired []*x509.Certificate
}

// pair is a certificate with its key; the zero pair is none.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that has signed nothing.
func NewAuthority(now time.Time) (Authority, error) {
	signer, err := newPair(now)
	return Authority{signer: signer}, err
}

func newPair(now time.Time) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "server-ca-" + now.UTC().Format("20060102150405")},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(authorityFor),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	cert, err := sign(template, template, key, key)
	return pair{cert, key}, err
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// ParseAuthority reads the data of a Secret, as [Authority.Data] writes it.
func ParseAuthority(data map[string][]byte) (Authority, error) {
	certs, err := parseCertificates(data[bundleKey])
	if err != nil {
		return Authority{}, fmt.Errorf("%s: %w", bundleKey, err)
	}
	take := func(name string) (pair, error) {
		key, err := parseKey(data[name])
		if err != nil {
			return pair{}, fmt.Errorf("%s: %w", name, err)
		}
		i := slices.IndexFunc(certs, func(c *x509.Certificate) bool { return key.PublicKey.Equal(c.PublicKey) })
		if i < 0 {
			return pair{}, fmt.Errorf("%s: %s has no certificate of this key", name, bundleKey)
		}
		p := pair{certs[i], key}
		certs = slices.Delete(certs, i, i+1)
		return p, nil
	}
	var a Authority
	if a.signer, err = take(signerKey); err != nil {
		return Authority{}, err
	}
	if len(data[nextKey]) > 0 {
		if a.next, err = take(nextKey); err != nil {
			return Authority{}, err
		}
	}
	a.retired = certs
	return a, nil
}

func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, cert)
	}
	if len(out) == 0 || len(bytes.TrimSpace(text)) > 0 {
		return nil, errors.New("it is no list of certificates in PEM form")
	}
	return out, nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is no private key in PEM form")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// Data returns the data of the Secret that keeps the authority.
func (a Authority) Data() (map[string][]byte, error) {
	data := map[string][]byte{bundleKey: a.Bundle()}
	for name, p := range map[string]pair{signerKey: a.signer, nextKey: a.next} {
		if p.key == nil {
			continue
		}
		der, err := x509.MarshalECPrivateKey(p.key)
		if err != nil {
			return nil, err
		}
		data[name] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	}
	return data, nil
}

// Bundle returns the certificates that API servers are to trust, in PEM form.
func (a Authority) Bundle() []byte {
	var out []byte
	for _, cert := range a.trusted() {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	return out
}

func (a Authority) trusted() []*x509.Certificate {
	var out []*x509.Certificate
	for _, p := range []pair{a.signer, a.next} {
		if p.cert != nil {
			out = append(out, p.cert)
		}
	}
	return append(out, a.retired...)
}

// Step returns what the authority becomes by now, and whether that is a change that
// must be kept. announced says that API servers have been given the [Authority.Bundle]
// as it is.
//
// An authority near its end announces a successor; one whose successor has been
// announced for [Overlap] is replaced by it; one that has expired is replaced at once.
func (a Authority) Step(now time.Time, announced bool) (Authority, bool, error) {
	kept := slices.DeleteFunc(slices.Clone(a.retired), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	changed := len(kept) != len(a.retired)
	a.retired = kept
	switch {
	case now.After(a.signer.cert.NotAfter):
		if a.next.cert != nil && now.Before(a.next.cert.NotAfter) {
			return a.promote(), true, nil
		}
		fresh, err := NewAuthority(now)
		return fresh, true, err
	case a.next.cert == nil && now.After(a.signer.cert.NotAfter.Add(-authorityFor/3)):
		next, err := newPair(now)
		a.next = next
		return a, true, err
	case a.next.cert != nil && announced && now.After(a.next.cert.NotBefore.Add(backdated+Overlap)):
		return a.promote(), true, nil
	}
	return a, changed, nil
}

func (a Authority) promote() Authority {
	a.retired = append(slices.Clone(a.retired), a.signer.cert)
	a.signer, a.next = a.next, pair{}
	return a
}

// Expires returns when the signing certificate ends, and Began when it began: one that
// begins in the future says that a clock is wrong.
func (a Authority) Expires() time.Time { return a.signer.cert.NotAfter }

// Began returns when the signing certificate became valid.
func (a Authority) Began() time.Time { return a.signer.cert.NotBefore }

// Issue signs a certificate of a server for DNS names and IP addresses, at least one.
func (a Authority) Issue(now time.Time, names ...string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(issuedFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if end := a.signer.cert.NotAfter; template.NotAfter.After(end) {
		template.NotAfter = end
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	leaf, err := sign(template, a.signer.cert, key, a.signer.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// Renews reports whether a certificate that it may have issued is to be issued anew:
// another key signs by now, or a third of its time is left.
func (a Authority) Renews(issued *tls.Certificate, now time.Time) bool {
	return issued == nil || issued.Leaf.CheckSignatureFrom(a.signer.cert) != nil ||
		now.After(issued.Leaf.NotAfter.Add(-issuedFor/3)) && issued.Leaf.NotAfter.Before(a.signer.cert.NotAfter)
}
