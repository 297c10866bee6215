// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// TokenAuthenticator authenticates bearer tokens.
type TokenAuthenticator interface {
	// AuthenticateToken returns the user of a token, and which of the given audiences
	// it is for: at least one of them, or nil if tokens of this form have no audience.
	// For an unknown token it returns no user and no error.
	AuthenticateToken(ctx context.Context, token string, audiences []string) (user *User, meant []string, err error)
}

// badTokenError is an [ErrBadCredentials] with kube-apiserver's message.
type badTokenError struct{}

func (badTokenError) Error() string        { return "invalid bearer token" }
func (badTokenError) Is(target error) bool { return target == ErrBadCredentials }

// Bearer authenticates bearer tokens, which are in the Authorization header or, because
// browsers cannot set that for WebSockets, in a subprotocol.
type Bearer struct {
	// Tokens are called in turn.
	Tokens []TokenAuthenticator
	// Audiences are the names of this server: a token must be for one of them. Empty:
	// tokens for any audience are accepted.
	Audiences []string
}

// Authenticate implements [Authenticator].
func (b Bearer) Authenticate(r *http.Request) (*User, error) {
	token := BearerToken(r)
	if token == "" {
		var err error
		if token, err = socketToken(r); token == "" || err != nil {
			return nil, err
		}
	}
	user, _, err := b.Review(r.Context(), token, nil)
	return user, err
}

// maxToken is the longest token that is authenticated, in bytes. Those of
// ServiceAccounts have about one thousand, those of identity providers up to ten
// thousand.
const maxToken = 32 << 10

// Review returns the user of a token that is for one of the audiences, and for which of
// them. Without audiences the server's own apply. If no authenticator accepts the
// token, the errors of all are returned.
func (b Bearer) Review(ctx context.Context, token string, audiences []string) (*User, []string, error) {
	if len(audiences) == 0 {
		audiences = b.Audiences
	}
	failed := []error{badTokenError{}}
	if len(token) > maxToken {
		return nil, nil, utilerrors.NewAggregate(failed)
	}
	for _, t := range b.Tokens {
		user, meant, err := t.AuthenticateToken(ctx, token, audiences)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if user == nil {
			continue
		}
		if meant == nil { // the token is for this server
			meant = intersection(audiences, b.Audiences)
		}
		if len(audiences) == 0 || len(meant) > 0 {
			return user, meant, nil
		}
	}
	return nil, nil, utilerrors.NewAggregate(failed)
}

func intersection(a, b []string) []string {
	var both []string
	for _, s := range a {
		if slices.Contains(b, s) {
			both = append(both, s)
		}
	}
	return both
}

// Tokens are static bearer tokens: token to user.
type Tokens map[string]*User

// AuthenticateToken implements [TokenAuthenticator]. It takes the same time for every
// token.
func (t Tokens) AuthenticateToken(_ context.Context, token string, _ []string) (*User, []string, error) {
	var found *User
	for known, u := range t {
		if subtle.ConstantTimeCompare([]byte(known), []byte(token)) == 1 {
			found = u
		}
	}
	return found, nil, nil
}

// BearerToken returns the bearer token of a request, or "".
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// The subprotocol that carries a token, and the header that lists the offered
// subprotocols.
const (
	socketProtocols   = "Sec-Websocket-Protocol"
	socketTokenPrefix = "base64url.bearer.authorization.k8s.io."
)

// socketToken removes the token from the subprotocols that a WebSocket offers, so that
// no later handler selects or logs it.
func socketToken(r *http.Request) (string, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return "", nil
	}
	token, rest, others := "", strings.Builder{}, false
	for _, line := range r.Header.Values(socketProtocols) {
		for protocol := range strings.SplitSeq(line, ",") {
			protocol = strings.TrimSpace(protocol)
			encoded, found := strings.CutPrefix(protocol, socketTokenPrefix)
			if !found {
				if rest.Len() > 0 {
					rest.WriteByte(',')
				}
				rest.WriteString(protocol)
				others = true
				continue
			}
			decoded, err := base64.RawURLEncoding.DecodeString(encoded)
			if token != "" || err != nil || len(decoded) == 0 || !utf8.Valid(decoded) {
				return "", ErrBadCredentials
			}
			token = string(decoded)
		}
	}
	if token == "" {
		return "", nil
	}
	if !others { // a server must select one, and it must not be the token
		return "", ErrBadCredentials
	}
	r.Header.Set(socketProtocols, rest.String())
	return token, nil
}
