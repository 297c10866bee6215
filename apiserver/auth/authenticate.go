// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"time"
)

// ErrBadCredentials: the request carries credentials, but wrong ones.
var ErrBadCredentials = errors.New("auth: the credentials of the request are not valid")

// Authenticators asks each in turn; the first that finds a user decides. When
// none does, the first error of any is the outcome: whoever shows wrong
// credentials is not taken for anonymous.
type Authenticators []Authenticator

// Authenticate implements [Authenticator].
func (all Authenticators) Authenticate(r *http.Request) (*User, error) {
	var failed error
	for _, a := range all {
		if _, anonymous := a.(AsAnonymous); anonymous && failed != nil {
			break
		}
		u, err := a.Authenticate(r)
		if u != nil && err == nil {
			return u, nil
		}
		if failed == nil {
			failed = err
		}
	}
	return nil, failed
}

// Certificates authenticates TLS client certificates: the common name is the
// user, the organisations are the groups.
type Certificates struct {
	// Roots that certificates must come from.
	Roots *x509.CertPool
}

// Authenticate implements [Authenticator].
func (c Certificates) Authenticate(r *http.Request) (*User, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	intermediates := x509.NewCertPool()
	for _, more := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(more)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: c.Roots, Intermediates: intermediates, CurrentTime: time.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, errors.Join(ErrBadCredentials, err)
	}
	if leaf.Subject.CommonName == "" {
		return nil, nil
	}
	return &User{
		Name: leaf.Subject.CommonName, Groups: leaf.Subject.Organization,
		Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {"X509SHA256=" + fingerprint(leaf)}},
	}, nil
}

// Tokens authenticates static bearer tokens: token to user.
type Tokens map[string]*User

// Authenticate implements [Authenticator]. The time it takes does not tell how
// much of a token was right.
func (t Tokens) Authenticate(r *http.Request) (*User, error) {
	token := BearerToken(r)
	if token == "" {
		return nil, nil
	}
	var found *User
	for known, u := range t {
		if subtle.ConstantTimeCompare([]byte(known), []byte(token)) == 1 {
			found = u
		}
	}
	if found == nil {
		return nil, ErrBadCredentials
	}
	return found, nil
}

// BearerToken returns the bearer token of a request, or "".
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// AsAnonymous authenticates everybody, as system:anonymous. It goes last.
type AsAnonymous struct{}

// Authenticate implements [Authenticator].
func (AsAnonymous) Authenticate(*http.Request) (*User, error) {
	return &User{Name: Anonymous, Groups: []string{Unauthenticated}}, nil
}
