// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
)

// Handler serves the requests of other servers with next, in the names of the users that
// they have authenticated or with the tokens of those, and all other requests as they are.
func (s *Server) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isPeer(r) {
			next.ServeHTTP(w, r)
			return
		}
		if r.Header.Get(protocolHeader) != s.protocol {
			w.Header().Set(protocolHeader, s.protocol)
			http.Error(w, "servers of these versions do not work together", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == leadsPath {
			s.serveLeads(w, r)
			return
		}
		passed, err := believed(r)
		if err != nil {
			http.Error(w, "the request of another server names no user: "+err.Error(), http.StatusBadRequest)
			return
		}
		ctx := context.WithValue(passed.Context(), forwardedKey{}, w.Header())
		next.ServeHTTP(w, passed.WithContext(ctx))
	})
}

// believed returns the request of another server as one of its user; or, if that has shown a
// token, as one with the token alone, whose user is to be found out here.
func believed(r *http.Request) (*http.Request, error) {
	name, token := r.Header.Get(userHeader), r.Header.Get(tokenHeader)
	for header := range r.Header {
		if strings.HasPrefix(header, HeaderPrefix) {
			delete(r.Header, header)
		}
	}
	out := r.WithContext(apiserver.PassedOn(r.Context()))
	if token == "" {
		user, err := decodeUser(name)
		if err != nil {
			return nil, err
		}
		return out.WithContext(auth.WithUser(out.Context(), user)), nil
	}
	state := *r.TLS
	state.PeerCertificates, state.VerifiedChains = nil, nil // they are not the user's
	out.TLS = &state
	out.Header.Set("Authorization", "Bearer "+token)
	return out, nil
}

// isPeer reports whether another server sent a request, by its certificate.
func (s *Server) isPeer(r *http.Request) bool {
	if r.TLS == nil || r.TLS.ServerName != ServerName {
		return false
	}
	certificates, err := s.verified()
	if err != nil {
		s.options.Log.Error("other servers cannot be recognised", "err", err)
		return false
	}
	shown, err := certificates.Authenticate(r)
	return err == nil && shown != nil
}

// GetCertificate returns that of this server for a connection of another server, and nil
// for others.
func (s *Server) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if hello.ServerName != ServerName {
		return nil, nil // it is for the listener to say
	}
	return s.options.Certificate()
}
