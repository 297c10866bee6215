// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"net/http"
)

// ErrBadCredentials: the request has invalid credentials.
var ErrBadCredentials = errors.New("auth: the credentials of the request are not valid")

// Authenticators calls each in turn; the first that returns a user decides. If none
// does, the first error is returned: a request with invalid credentials is not
// anonymous.
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

// CredentialID is the extra key that identifies the credential of a user:
// "X509SHA256=..." or "JTI=...".
const CredentialID = "authentication.kubernetes.io/credential-id"

// AsAnonymous authenticates every request as system:anonymous. It must be the last.
type AsAnonymous struct{}

// Authenticate implements [Authenticator].
func (AsAnonymous) Authenticate(*http.Request) (*User, error) {
	return &User{Name: Anonymous, Groups: []string{Unauthenticated}}, nil
}
