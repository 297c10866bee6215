// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/serviceaccount"
)

// usualIssuer is who issues the tokens of ServiceAccounts in most clusters.
const usualIssuer = "https://kubernetes.default.svc.cluster.local"

// tokens returns the tokens of ServiceAccounts, whose uses are noted.
func (p *Plane) tokens(uses *serviceaccount.Uses) *serviceaccount.Tokens {
	o := &p.options.Authentication
	return serviceaccount.NewTokens(serviceaccount.Options{
		Store: p.store, Issuers: o.issuers(), Audiences: o.Audiences,
		MaxLife: o.MaxTokenLife, ExactLife: o.ExactTokenLife, NewID: p.options.Entropy.UID, Uses: uses,
		Keys: func() (*serviceaccount.Keys, error) {
			keys, err := p.keys()
			if err != nil {
				return nil, err
			}
			return &keys.Accounts, nil
		},
	})
}

// issuers of the tokens of ServiceAccounts.
func (o *Authentication) issuers() []string {
	if len(o.Issuers) == 0 {
		return []string{usualIssuer}
	}
	return o.Issuers
}

// keySetURL is where others find the keys that verify tokens of ServiceAccounts.
func (p *Plane) keySetURL() string {
	o := &p.options.Authentication
	return cmp.Or(o.KeySetURL, strings.TrimSuffix(cmp.Or(p.URL(), o.issuers()[0]), "/")+serviceaccount.KeySetPath)
}

// roots returns the certificate of the plane's authority, in PEM.
func (p *Plane) roots() ([]byte, error) {
	keys, err := p.keys()
	if err != nil {
		return nil, err
	}
	return keys.CertificatePEM(), nil
}

// authenticator finds the users of requests from the network: by what a proxy
// says, by certificates of the plane's authority, by token, or as
// system:anonymous.
type authenticator struct {
	// certified asks about requests of connections that show a certificate.
	certified func() (auth.Authenticators, error)
	bearer    auth.Bearer
	// anonymous reports whether a path may be asked for without credentials.
	anonymous func(path string) bool
}

func newAuthenticator(keys func() (*Keys, error), o Authentication, accounts *serviceaccount.Tokens) *authenticator {
	a := &authenticator{
		bearer: auth.Bearer{Tokens: append([]auth.TokenAuthenticator{o.Tokens, accounts}, o.TokenReviewers...), Audiences: accounts.Audiences()},
		anonymous: func(path string) bool {
			return !o.NoAnonymous && (o.AnonymousPaths == nil || slices.Contains(o.AnonymousPaths, path))
		},
	}
	a.certified = sync.OnceValues(func() (auth.Authenticators, error) {
		k, err := keys()
		if err != nil {
			return nil, err
		}
		var chain auth.Authenticators
		if o.FrontProxy != nil {
			chain = append(chain, o.FrontProxy)
		}
		return append(chain, auth.NewCertificates(k.clients()...), a.bearer), nil
	})
	return a
}

// Authenticate implements [auth.Authenticator].
func (a *authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	user, err := a.shown(r)
	if err != nil {
		return nil, err
	}
	if user == nil {
		if !a.anonymous(r.URL.Path) {
			return nil, auth.ErrBadCredentials
		}
		return auth.AsAnonymous{}.Authenticate(r)
	}
	return known(user), nil
}

// shown finds the user that a request shows to be, nil for none.
func (a *authenticator) shown(r *http.Request) (*auth.User, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return a.bearer.Authenticate(r)
	}
	chain, err := a.certified()
	if err != nil {
		return nil, err
	}
	return chain.Authenticate(r)
}

// known returns a user with the group of all that have shown who they are.
func known(user *auth.User) *auth.User {
	if user.In(auth.Authenticated) {
		return user
	}
	out := *user
	out.Groups = append(slices.Clone(user.Groups), auth.Authenticated)
	return &out
}

// Review answers TokenReviews.
func (a *authenticator) Review(ctx context.Context, token string, audiences []string) (*auth.User, []string, error) {
	user, meant, err := a.bearer.Review(ctx, token, audiences)
	if err != nil {
		return nil, nil, err
	}
	return known(user), meant, nil
}

// ReadTokens reads users in the form of a static token file: one line
// "token,user,uid" per user, with an optional fourth column of groups,
// separated by commas and quoted.
func ReadTokens(r io.Reader) (auth.Tokens, error) {
	reader := csv.NewReader(r)
	reader.FieldsPerRecord = -1
	reader.TrimLeadingSpace = true
	tokens := auth.Tokens{}
	for {
		line, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return tokens, nil
		}
		if err != nil {
			return nil, fmt.Errorf("controlplane: read the tokens: %w", err)
		}
		number, _ := reader.FieldPos(0)
		if len(line) < 3 || line[0] == "" || line[1] == "" {
			return nil, fmt.Errorf("controlplane: line %d of the tokens: want at least token,user,uid", number)
		}
		if tokens[line[0]] != nil {
			return nil, fmt.Errorf("controlplane: line %d of the tokens: this token stands in an earlier line as well", number)
		}
		user := &auth.User{Name: line[1], UID: line[2]}
		if len(line) > 3 && line[3] != "" {
			for _, group := range strings.Split(line[3], ",") {
				user.Groups = append(user.Groups, strings.TrimSpace(group))
			}
		}
		tokens[line[0]] = user
	}
}
