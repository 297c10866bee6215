// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"net/http"
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

// CredentialID is the extra information by which the credential of a user can be
// told from others of the same user: "X509SHA256=..." or "JTI=...".
const CredentialID = "authentication.kubernetes.io/credential-id"

// AsAnonymous authenticates everybody, as system:anonymous. It goes last.
type AsAnonymous struct{}

// Authenticate implements [Authenticator].
func (AsAnonymous) Authenticate(*http.Request) (*User, error) {
	return &User{Name: Anonymous, Groups: []string{Unauthenticated}}, nil
}
