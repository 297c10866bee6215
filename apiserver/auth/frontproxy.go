// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// FrontProxy authenticates requests that a proxy has authenticated: it passes the user
// in headers and authenticates itself with a client certificate.
type FrontProxy struct {
	// Certificates authenticates the proxy itself; required.
	Certificates *Certificates
	// Names are the common names that the certificate may have. Empty: any.
	Names []string
	// UserHeaders, UIDHeaders and GroupHeaders are the headers of the user; of the
	// first two the first that is not empty is used. Nil: X-Remote-User, X-Remote-Uid
	// and X-Remote-Group.
	UserHeaders, UIDHeaders, GroupHeaders []string
	// ExtraPrefixes are the prefixes of headers with extra information. Nil:
	// X-Remote-Extra-.
	ExtraPrefixes []string
}

// Authenticate implements [Authenticator]. It removes the headers that it used, so that
// no later handler uses them again.
func (p FrontProxy) Authenticate(r *http.Request) (*User, error) {
	name := first(r.Header, p.UserHeaders, "X-Remote-User")
	if name == "" {
		return nil, nil
	}
	proxy, err := p.Certificates.Authenticate(r)
	if proxy == nil || err != nil {
		return nil, err
	}
	if len(p.Names) > 0 && !slices.Contains(p.Names, proxy.Name) {
		return nil, ErrBadCredentials
	}
	u := &User{Name: name, UID: first(r.Header, p.UIDHeaders, "X-Remote-Uid"), Extra: map[string][]string{}}
	for _, header := range orNames(p.GroupHeaders, "X-Remote-Group") {
		u.Groups = append(u.Groups, r.Header.Values(header)...)
	}
	for _, prefix := range orNames(p.ExtraPrefixes, "X-Remote-Extra-") {
		prefix = strings.ToLower(prefix)
		for header, values := range r.Header {
			key, found := strings.CutPrefix(strings.ToLower(header), prefix)
			if !found {
				continue
			}
			if unescaped, err := url.PathUnescape(key); err == nil {
				key = unescaped
			}
			u.Extra[key] = append(u.Extra[key], values...)
			delete(r.Header, header)
		}
	}
	for _, header := range slices.Concat(orNames(p.UserHeaders, "X-Remote-User"), orNames(p.UIDHeaders, "X-Remote-Uid"), orNames(p.GroupHeaders, "X-Remote-Group")) {
		r.Header.Del(header)
	}
	return u, nil
}

// orNames returns the names, or the default.
func orNames(names []string, usual string) []string {
	if names == nil {
		return []string{usual}
	}
	return names
}

// first returns the first value of the first header that has one.
func first(h http.Header, names []string, usual string) string {
	for _, name := range orNames(names, usual) {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}
