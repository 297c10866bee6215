// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/steer-dev/steer/apiserver/auth"
)

// authenticator finds the users of requests from the network: by certificates
// of the plane's authority, by token, or nobody in particular.
type authenticator struct {
	certificates func() (*auth.Certificates, error)
	tokens       auth.Tokens
}

func newAuthenticator(keys func() (*Keys, error), tokens auth.Tokens) authenticator {
	return authenticator{tokens: tokens, certificates: sync.OnceValues(func() (*auth.Certificates, error) {
		k, err := keys()
		if err != nil {
			return nil, err
		}
		return auth.NewCertificates(k.pool()), nil
	})}
}

// Authenticate implements [auth.Authenticator].
func (a authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	chain := auth.Authenticators{a.tokens}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		certificates, err := a.certificates()
		if err != nil {
			return nil, err
		}
		chain = append(chain, certificates)
	}
	user, err := chain.Authenticate(r)
	if err != nil {
		return nil, err
	}
	if user == nil {
		return auth.AsAnonymous{}.Authenticate(r)
	}
	if !user.In(auth.Authenticated) {
		known := *user
		known.Groups = append(slices.Clone(user.Groups), auth.Authenticated)
		user = &known
	}
	return user, nil
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
