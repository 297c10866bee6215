// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/leadership"
	"github.com/steer-dev/steer/controlplane/serviceaccount"
)

// Keys are the secrets of a plane: a certificate authority that signs the
// certificates of its server and of its users, and the key that signs the tokens
// of ServiceAccounts. They always come from the
// operating system's randomness or from outside, never from Options.Entropy.
type Keys struct {
	// CA is the certificate of the authority.
	CA *x509.Certificate
	// Signer is its private key.
	Signer crypto.Signer
	// Clients are further authorities whose client certificates are accepted.
	// nil: CA's alone.
	Clients []*x509.Certificate
	// Serving is the certificate that the listener shows. nil: one that CA signs,
	// renewed before it ends.
	Serving *tls.Certificate
	// Accounts sign and verify the tokens of ServiceAccounts. Without a Signer
	// there is one for as long as the plane lives.
	Accounts serviceaccount.Keys
	// FrontProxy is the authority of the certificate that the plane shows to the API
	// servers behind APIServices, which accept from its holder the name of any user in
	// headers. It is never CA, which signs the certificates of users. Without a Signer
	// there is one for as long as the plane lives.
	FrontProxy certificates.Authority
	// Peer is the authority of the certificates that the servers of one store show one
	// another: all of them have the same, and it signs nothing else, because a holder of
	// such a certificate may act as any user. Without a Signer there is one for as long
	// as the plane lives.
	Peer certificates.Authority
}

// The common names of certificates. That of the authority is no other's: OpenSSL
// takes a certificate whose issuer is its subject for self-signed.
const (
	caName           = "steer-ca"
	serverName       = "kube-apiserver"
	frontProxyCAName = "steer-front-proxy-ca"
	frontProxyName   = "front-proxy-client"
	peerCAName       = "steer-peer-ca"
	peerName         = "steer-peer"
)

const (
	caLifetime = 10 * 365 * 24 * time.Hour
	// clockSkew is how far back that of the authority is valid, for clients whose clock is behind.
	clockSkew = time.Hour
)

// NewKeys makes new keys.
func NewKeys() (*Keys, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("controlplane: make the key of the certificate authority: %w", err)
	}
	authority, err := newAuthority(signer, caName)
	if err != nil {
		return nil, err
	}
	return (&Keys{CA: authority.Certificate, Signer: signer}).completed()
}

// newAuthority makes the certificate of an authority for its key.
func newAuthority(signer crypto.Signer, name string) (certificates.Authority, error) {
	serial, err := certificates.NewSerial()
	if err != nil {
		return certificates.Authority{}, err
	}
	now := time.Now()
	return certificates.NewAuthority(signer, serial, name, now.Add(-clockSkew), now.Add(caLifetime))
}

// newAuthorityNamed makes a new authority, key and all.
func newAuthorityNamed(name string) (certificates.Authority, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificates.Authority{}, fmt.Errorf("controlplane: make the key of %s: %w", name, err)
	}
	return newAuthority(signer, name)
}

// newAccountKeys makes a new key for the tokens of ServiceAccounts.
func newAccountKeys() (serviceaccount.Keys, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return serviceaccount.Keys{}, fmt.Errorf("controlplane: make the key of the service accounts: %w", err)
	}
	return serviceaccount.Keys{Signer: signer}, nil
}

// completed returns the keys with new ones where they lack a signer, without changing k.
func (k *Keys) completed() (*Keys, error) {
	whole := *k
	if whole.Accounts.Signer == nil {
		made, err := newAccountKeys()
		if err != nil {
			return nil, err
		}
		made.Verifiers = k.Accounts.Verifiers
		whole.Accounts = made
	}
	if whole.FrontProxy.Signer == nil {
		var err error
		if whole.FrontProxy, err = newAuthorityNamed(frontProxyCAName); err != nil {
			return nil, err
		}
	}
	if whole.Peer.Signer == nil {
		var err error
		if whole.Peer, err = newAuthorityNamed(peerCAName); err != nil {
			return nil, err
		}
	}
	return &whole, nil
}

// fingerprints returns those of the public keys, by the names of their files.
func (k *Keys) fingerprints() (leadership.Fingerprints, error) {
	return leadership.FingerprintsOf(map[string]crypto.Signer{
		caFiles: k.Signer, frontProxyFiles: k.FrontProxy.Signer, peerFiles: k.Peer.Signer, strings.TrimSuffix(accountKeyFile, keySuffix): k.Accounts.Signer,
	})
}

// testKeysName is the common name that gives the test keys away.
const testKeysName = "steer test authority, with public keys"

// TestKeys returns the same keys every time. They are for deterministic runs
// inside one process; a plane with a listener refuses them.
func TestKeys() (*Keys, error) {
	seed := sha256.Sum256([]byte(testKeysName))
	signer := ed25519.NewKeyFromSeed(seed[:])
	from := time.Date(1999, time.January, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(200, 0, 0)
	ca, err := certificates.NewAuthority(signer, big.NewInt(1), testKeysName, from, to)
	if err != nil {
		return nil, err
	}
	keys := &Keys{CA: ca.Certificate, Signer: signer}
	proxies := sha256.Sum256([]byte(testKeysName + ": " + frontProxyCAName))
	if keys.FrontProxy, err = certificates.NewAuthority(ed25519.NewKeyFromSeed(proxies[:]), big.NewInt(2), frontProxyCAName, from, to); err != nil {
		return nil, err
	}
	others := sha256.Sum256([]byte(testKeysName + ": " + peerCAName))
	if keys.Peer, err = certificates.NewAuthority(ed25519.NewKeyFromSeed(others[:]), big.NewInt(3), peerCAName, from, to); err != nil {
		return nil, err
	}
	accounts, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		return nil, fmt.Errorf("controlplane: make the test keys: %w", err)
	}
	keys.Accounts.Signer = accounts
	return keys, nil
}

// areForTests tells the keys of [TestKeys].
func (k *Keys) areForTests() bool { return k.CA.Subject.CommonName == testKeysName }

// CertificatePEM returns what clients trust: the certificate of the authority
// and, if the listener shows another's, that with its chain.
func (k *Keys) CertificatePEM() []byte {
	out := encodeCertificate(k.CA.Raw)
	if k.Serving != nil {
		for _, der := range k.Serving.Certificate {
			out = append(out, encodeCertificate(der)...)
		}
	}
	return out
}

// clients returns the authorities of client certificates.
func (k *Keys) clients() []*x509.Certificate {
	return slices.Concat(k.Clients, []*x509.Certificate{k.CA})
}

// pool returns the same, for TLS.
func (k *Keys) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range k.clients() {
		pool.AddCert(c)
	}
	return pool
}

// issue signs a certificate for a new key.
func (k *Keys) issue(subject pkix.Name, hosts []string, usage x509.ExtKeyUsage) (tls.Certificate, error) {
	return certificates.Authority{Certificate: k.CA, Signer: k.Signer}.Issue(subject, hosts, usage)
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("controlplane: encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
