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

// TokenAuthenticator finds the users of bearer tokens.
type TokenAuthenticator interface {
	// AuthenticateToken returns the user of a token, and for which of the
	// audiences asked for it is meant: at least one of them, or nil when tokens of
	// this form say nothing about that. It returns no user and no error for a
	// token that it does not know.
	AuthenticateToken(ctx context.Context, token string, audiences []string) (user *User, meant []string, err error)
}

// badTokenError is an [ErrBadCredentials] in the words that clients know.
type badTokenError struct{}

func (badTokenError) Error() string        { return "invalid bearer token" }
func (badTokenError) Is(target error) bool { return target == ErrBadCredentials }

// Bearer authenticates bearer tokens, which requests carry in the header
// Authorization or, since browsers cannot set that on WebSockets, as a
// subprotocol.
type Bearer struct {
	// Tokens are asked in turn.
	Tokens []TokenAuthenticator
	// Audiences are the names of this server: a token must be meant for one of
	// them. Empty: tokens for anybody will do.
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

// maxToken is the length of the longest token that anybody looks into, in bytes. Those
// of ServiceAccounts have one, those of identity providers up to ten thousand.
const maxToken = 32 << 10

// Review returns the user of a token that is meant for one of the audiences, and
// for which of them. Without audiences the server's own are meant. The errors of
// all authenticators are told when none knows the token.
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
		if meant == nil { // then it is for this server
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

// AuthenticateToken implements [TokenAuthenticator]. The time it takes does not
// tell how much of a token was right.
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

// The subprotocol that carries a token, and where a WebSocket lists those it
// offers.
const (
	socketProtocols   = "Sec-Websocket-Protocol"
	socketTokenPrefix = "base64url.bearer.authorization.k8s.io."
)

// socketToken takes the token out of the subprotocols that a WebSocket offers,
// where nobody after this may choose or log it.
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
	if !others { // a server must choose one, and it must not be the token
		return "", ErrBadCredentials
	}
	r.Header.Set(socketProtocols, rest.String())
	return token, nil
}
