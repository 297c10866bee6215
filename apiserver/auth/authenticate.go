// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
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
