// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// keptCertificates bounds how many verified certificates are cached.
const keptCertificates = 1024

// Certificates authenticates TLS client certificates: the common name is the user, the
// organisations are the groups, in addition to system:authenticated, and the attribute
// that KEP-4680 defines is the UID. It is safe for concurrent use.
//
// Verifying a certificate costs more than reading an object, and a connection presents
// the same one with every request, as the same pointer; connections with equal
// certificates share it. So verified certificates are cached until one of their chain
// expires. Verification consults no revocation lists, so the cache misses none.
type Certificates struct {
	authorities []*x509.Certificate
	roots       *x509.CertPool // the same

	mu    sync.RWMutex
	known map[shown]verified
}

// shown is a chain of certificates as a connection presents it. The cache keeps the
// first one alive, so that its address is not reused.
type shown struct {
	leaf *x509.Certificate
	rest [sha256.Size]byte // hash of the other certificates; zero without any
}

// verified is the result of a verification, and until when it is valid.
type verified struct {
	user       *User // nil: the certificate is valid but has no user name
	begin, end time.Time
}

// NewCertificates returns an authenticator for certificates of the certificate
// authorities.
func NewCertificates(authorities ...*x509.Certificate) *Certificates {
	roots := x509.NewCertPool()
	for _, a := range authorities {
		roots.AddCert(a)
	}
	return &Certificates{authorities: authorities, roots: roots, known: map[shown]verified{}}
}

// Authorities returns the certificate authorities.
func (c *Certificates) Authorities() []*x509.Certificate { return c.authorities }

// Authenticate implements [Authenticator].
func (c *Certificates) Authenticate(r *http.Request) (*User, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	key, now := identify(r.TLS.PeerCertificates), time.Now()
	c.mu.RLock()
	v, ok := c.known[key]
	c.mu.RUnlock()
	if ok && !now.Before(v.begin) && !now.After(v.end) {
		return v.user, nil
	}
	v, err := c.verify(r.TLS.PeerCertificates, now)
	if err != nil {
		return nil, err
	}
	c.remember(key, v, now)
	return v.user, nil
}

func identify(chain []*x509.Certificate) shown {
	s := shown{leaf: chain[0]}
	if len(chain) > 1 {
		h := sha256.New()
		for _, cert := range chain[1:] {
			_, _ = h.Write(cert.Raw) // a hash does not fail; DER is self-delimiting
		}
		h.Sum(s.rest[:0])
	}
	return s
}

// verify verifies the first certificate of a chain.
func (c *Certificates) verify(sent []*x509.Certificate, now time.Time) (verified, error) {
	leaf := sent[0]
	intermediates := x509.NewCertPool()
	for _, more := range sent[1:] {
		intermediates.AddCert(more)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: c.roots, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return verified{}, errors.Join(ErrBadCredentials, err)
	}
	v := verified{begin: leaf.NotBefore, end: leaf.NotAfter}
	for _, cert := range chains[0] { // one valid chain suffices
		if cert.NotBefore.After(v.begin) {
			v.begin = cert.NotBefore
		}
		if cert.NotAfter.Before(v.end) {
			v.end = cert.NotAfter
		}
	}
	if leaf.Subject.CommonName != "" {
		uid, err := certificateUID(leaf)
		if err != nil {
			return verified{}, err
		}
		v.user = &User{
			Name: leaf.Subject.CommonName, UID: uid, Groups: leaf.Subject.Organization,
			Extra: map[string][]string{CredentialID: {"X509SHA256=" + fingerprint(leaf)}},
		}
		v.user.join(Authenticated)
	}
	return v, nil
}

// certificateUID returns the UID in the subject of a certificate, or "".
func certificateUID(leaf *x509.Certificate) (string, error) {
	oid := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}
	uid := ""
	for _, name := range leaf.Subject.Names {
		if !name.Type.Equal(oid) {
			continue
		}
		text, ok := name.Value.(string)
		if !ok || text == "" || uid != "" {
			return "", fmt.Errorf("%w: the certificate must name one UID, as text", ErrBadCredentials)
		}
		uid = text
	}
	return uid, nil
}

func (c *Certificates) remember(key shown, v verified, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= keptCertificates {
		for k, old := range c.known {
			if now.After(old.end) {
				delete(c.known, k)
			}
		}
	}
	if len(c.known) >= keptCertificates {
		clear(c.known) // certificates in use are added again
	}
	c.known[key] = v
}
