// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The headers of impersonation.
const (
	impersonateUser  = "Impersonate-User"
	impersonateUID   = "Impersonate-Uid"
	impersonateGroup = "Impersonate-Group"
	impersonateExtra = "Impersonate-Extra-"
)

// ErrNoImpersonatedUser: groups, extras or a uid are impersonated without a user.
var ErrNoImpersonatedUser = errors.New("requested impersonation without impersonating a user")

const serviceAccountPrefix = "system:serviceaccount:"

// Impersonation returns the user that the headers of a request ask to act as,
// nil when they do not ask, and the permissions that the real user needs for it.
func Impersonation(r *http.Request, user *User) (as *User, needs []*Attributes, err error) {
	name := r.Header.Get(impersonateUser)
	uid := r.Header.Get(impersonateUID)
	groups := r.Header.Values(impersonateGroup)
	extra := map[string][]string{}
	for header, values := range r.Header {
		if len(header) <= len(impersonateExtra) || !strings.EqualFold(header[:len(impersonateExtra)], impersonateExtra) {
			continue
		}
		key := strings.ToLower(header[len(impersonateExtra):])
		if unescaped, err := url.PathUnescape(key); err == nil {
			key = unescaped
		}
		extra[key] = append(extra[key], values...)
	}
	if name == "" {
		if uid != "" || len(groups) > 0 || len(extra) > 0 {
			return nil, nil, ErrNoImpersonatedUser
		}
		return nil, nil, nil
	}
	need := func(group, resource, subresource, namespace, object string) {
		needs = append(needs, &Attributes{
			User: user, Verb: "impersonate", ResourceRequest: true, Group: group, Version: "v1",
			Resource: resource, Subresource: subresource, Namespace: namespace, Name: object,
		})
	}
	as = &User{Name: name, UID: uid, Groups: slices.Clone(groups), Extra: extra}
	namespace, account, isAccount := strings.Cut(strings.TrimPrefix(name, serviceAccountPrefix), ":")
	isAccount = isAccount && strings.HasPrefix(name, serviceAccountPrefix)
	switch {
	case isAccount:
		need("", "serviceaccounts", "", namespace, account)
		if len(groups) == 0 {
			as.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
		}
	default:
		need("", "users", "", "", name)
	}
	for _, g := range groups {
		need("", "groups", "", "", g)
	}
	keys := make([]string, 0, len(extra))
	for k := range extra {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		for _, v := range extra[k] {
			need("authentication.k8s.io", "userextras", k, "", v)
		}
	}
	if uid != "" {
		need("authentication.k8s.io", "uids", "", "", uid)
	}
	base := Authenticated
	if name == Anonymous {
		base = Unauthenticated
	}
	if !as.In(Authenticated) && !as.In(Unauthenticated) {
		as.Groups = append(as.Groups, base)
	}
	return as, needs, nil
}

// StripImpersonation removes the headers, so that no later handler acts on them.
func StripImpersonation(h http.Header) {
	for header := range h {
		if strings.HasPrefix(strings.ToLower(header), "impersonate-") {
			delete(h, header)
		}
	}
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}
