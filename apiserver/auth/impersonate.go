// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The headers of impersonation.
const (
	impersonatePrefix = "Impersonate-"
	impersonateUser   = impersonatePrefix + "User"
	impersonateUID    = impersonatePrefix + "Uid"
	impersonateGroup  = impersonatePrefix + "Group"
	impersonateExtra  = impersonatePrefix + "Extra-"
)

// Prefixes of the names of special users, and the group of nodes.
const (
	serviceAccountPrefix = "system:serviceaccount:"
	nodePrefix           = "system:node:"
	nodes                = "system:nodes"
)

// authenticationGroup has the virtual resources that constrained impersonation is
// authorized on.
const authenticationGroup = "authentication.k8s.io"

// WantedUser returns the user in the impersonation headers of a request, or nil if
// there are none. It fails if headers are set without a user name.
func WantedUser(h http.Header) (*User, error) {
	if !impersonates(h) {
		return nil, nil
	}
	as := &User{Name: h.Get(impersonateUser), UID: h.Get(impersonateUID), Groups: slices.Clone(h[impersonateGroup])}
	asked := as.UID != "" || len(as.Groups) > 0
	for header, values := range h {
		if !strings.HasPrefix(header, impersonateExtra) {
			continue
		}
		asked = true
		key := strings.ToLower(header[len(impersonateExtra):])
		if unescaped, err := url.PathUnescape(key); err == nil {
			key = unescaped
		}
		if as.Extra == nil {
			as.Extra = map[string][]string{}
		}
		as.Extra[key] = append(as.Extra[key], values...)
	}
	switch {
	case as.Name != "":
		return as, nil
	case asked:
		return nil, fmt.Errorf("requested &user.DefaultInfo{Name:%q, UID:%q, Groups:%#v, Extra:%#v} without impersonating a user name", as.Name, as.UID, as.Groups, as.Extra)
	}
	return nil, nil
}

func impersonates(h http.Header) bool {
	for header := range h {
		if strings.HasPrefix(header, impersonatePrefix) {
			return true
		}
	}
	return false
}

// StripImpersonation removes the headers, so that no later handler acts on them.
func StripImpersonation(h http.Header) {
	for header := range h {
		if strings.HasPrefix(header, impersonatePrefix) {
			delete(h, header)
		}
	}
}

// Impersonator authorizes impersonation, in one of several modes. All but the last are
// constrained (KEP-5284): they require the verb "impersonate:MODE" on the impersonated
// user and "impersonate-on:MODE:VERB" on the request. The last requires the verb
// "impersonate" alone. Which modes apply depends on whether the impersonated user is a
// node, a service account or neither. The zero value needs an Authorizer; it is safe
// for concurrent use.
type Impersonator struct {
	Authorizer Authorizer

	mu sync.Mutex
	// last is the mode that succeeded last, by user name. It is tried first, so that
	// its error is the one that the user sees.
	last map[string]int
}

// maxRemembered bounds the users whose last mode is stored.
const maxRemembered = 10_000

// mode is one way to impersonate.
type mode struct {
	name string // empty: unconstrained
	// applies reports whether a user can be impersonated in this mode.
	applies func(user, as *User) bool
}

// constraint is the verb of the mode; empty: it is unconstrained.
func (m *mode) constraint() string {
	if m.name == "" {
		return ""
	}
	return "impersonate:" + m.name
}

func modes() [5]mode {
	return [...]mode{
		{"associated-node", func(user, as *User) bool {
			name, ok := nodeName(as)
			_, _, account := accountName(user.Name)
			at := user.Extra["authentication.kubernetes.io/node-name"]
			return ok && account && len(at) == 1 && at[0] == name
		}},
		{"arbitrary-node", func(_, as *User) bool { _, ok := nodeName(as); return ok }},
		{"serviceaccount", func(_, as *User) bool { _, _, ok := accountName(as.Name); return ok && onlyName(as) }},
		{"user-info", func(_, as *User) bool {
			_, _, account := accountName(as.Name)
			_, node := nodeName(&User{Name: as.Name})
			return !account && !node
		}},
		{"", func(_, _ *User) bool { return true }},
	}
}

func onlyName(u *User) bool { return u.UID == "" && len(u.Groups) == 0 && len(u.Extra) == 0 }

// nodeName returns the node name of a user that has nothing but the name and group of a
// node.
func nodeName(u *User) (string, bool) {
	name, ok := strings.CutPrefix(u.Name, nodePrefix)
	return name, ok && onlyName(u) && len(validation.IsDNS1123Subdomain(name)) == 0
}

// accountName splits the user name of a service account.
func accountName(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	ok = ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
	return namespace, name, ok
}

// Impersonate returns the user that a request of a.User continues as if it impersonates
// as, and the verb of a constrained mode that allows it. A refusal is a [*RefusedError].
func (i *Impersonator) Impersonate(ctx context.Context, a *Attributes, as *User) (user *User, constraint string, err error) {
	i.mu.Lock()
	last, remembered := i.last[a.User.Name]
	i.mu.Unlock()
	var order [5]int
	n := 0
	if remembered {
		order[0], n = last, 1
	}
	all := modes()
	for m := range all {
		if !remembered || m != last {
			order[n] = m
			n++
		}
	}
	var refusal error
	for _, m := range order {
		if !all[m].applies(a.User, as) {
			continue
		}
		user, err := i.try(ctx, all[m].name, a, as)
		if err == nil {
			i.remember(a.User.Name, m)
			return user, all[m].constraint(), nil
		}
		if refusal == nil {
			refusal = err
		}
	}
	return nil, "", refusal
}

func (i *Impersonator) remember(user string, m int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.last == nil || len(i.last) >= maxRemembered {
		i.last = map[string]int{}
	}
	i.last[user] = m
}

// try impersonates in one mode.
func (i *Impersonator) try(ctx context.Context, mode string, a *Attributes, as *User) (*User, error) {
	requester := *a
	if mode == "associated-node" {
		// The attributes do not name the node: that it is the user's own is checked
		// before.
		user := *a.User
		keys := make([]string, 0, len(user.Extra))
		for key := range user.Extra {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		user.Extra = map[string][]string{"authentication.kubernetes.io/associated-node-keys": keys}
		requester.User = &user
	}
	if mode != "" {
		on := requester
		on.Verb = "impersonate-on:" + mode + ":" + a.Verb
		if err := Check(ctx, i.Authorizer, &on); err != nil {
			return nil, err
		}
	}
	q := &questions{ctx: ctx, authorizer: i.Authorizer, user: requester.User, mode: mode}
	out := *as
	q.name(&out)
	if as.UID != "" {
		q.may(authenticationGroup, "uids", "", as.UID)
	}
	q.groups(as.Groups)
	q.extra(as.Extra)
	if q.refusal != nil {
		return nil, q.refusal
	}
	switch {
	case out.Name == Anonymous:
		out.join(Unauthenticated)
	case !out.In(Unauthenticated):
		out.join(Authenticated)
	}
	return &out, nil
}

// join adds a group to a user.
func (u *User) join(group string) {
	if !u.In(group) {
		u.Groups = append(slices.Clip(u.Groups), group)
	}
}

// questions authorizes the parts of an impersonated user, until one is refused.
type questions struct {
	ctx        context.Context // lives within one call
	authorizer Authorizer
	user       *User
	mode       string
	refusal    error
}

func (q *questions) attributes(group, resource, subresource, name string) *Attributes {
	verb := "impersonate"
	if q.mode != "" {
		verb += ":" + q.mode
	}
	return &Attributes{
		User: q.user, Verb: verb, ResourceRequest: true, Group: group, Version: "v1",
		Resource: resource, Subresource: subresource, Name: name,
	}
}

// identities returns the API group of users, groups and the like: that of
// authentication for constrained modes.
func (q *questions) identities() string {
	if q.mode != "" {
		return authenticationGroup
	}
	return ""
}

func (q *questions) ask(a *Attributes) {
	if q.refusal == nil {
		q.refusal = Check(q.ctx, q.authorizer, a)
	}
}

func (q *questions) may(group, resource, subresource, name string) {
	q.ask(q.attributes(group, resource, subresource, name))
}

func (q *questions) refuse(a *Attributes, reason string) {
	if q.refusal == nil {
		q.refusal = &RefusedError{Attributes: *a, Reason: reason}
	}
}

// name authorizes the user name, and adds the groups that follow from it.
func (q *questions) name(as *User) {
	a := q.attributes(q.identities(), "users", "", as.Name)
	if node, ok := nodeName(as); ok && q.mode != "" {
		a.Resource, a.Name, as.Groups = "nodes", node, []string{nodes}
		if q.mode == "associated-node" {
			a.Name = "*"
		}
	}
	if namespace, name, ok := accountName(as.Name); ok {
		a.Resource, a.Namespace, a.Name = "serviceaccounts", namespace, name
		if len(as.Groups) == 0 {
			as.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
		}
	}
	q.ask(a)
}

// many is the number of values from which a wildcard is tried first.
const many = 4

func (q *questions) groups(groups []string) {
	if q.mode != "" {
		a := q.attributes(q.identities(), "groups", "", "")
		switch {
		case slices.Contains(groups, ""):
			q.refuse(a, "impersonating the empty string group is not allowed")
		case slices.Contains(groups, Masters):
			a.Name = Masters
			q.refuse(a, "impersonating the system:masters group is not allowed")
		case len(groups) >= many && q.refusal == nil:
			a.Name = "*"
			if Check(q.ctx, q.authorizer, a) == nil {
				return
			}
		}
	}
	for _, g := range groups {
		q.may(q.identities(), "groups", "", g)
	}
}

func (q *questions) extra(extra map[string][]string) {
	keys, count := make([]string, 0, len(extra)), len(extra)
	for key, values := range extra {
		keys = append(keys, key)
		count = max(count, len(values))
	}
	slices.Sort(keys)
	if q.mode != "" && len(extra) > 0 {
		a := q.attributes(authenticationGroup, "userextras", "", "")
		for _, key := range keys {
			if wrong := wrongExtra(key, extra[key]); wrong != "" {
				q.refuse(a, wrong)
			}
		}
		if count >= many && q.refusal == nil {
			a.Subresource, a.Name = "*", "*"
			if Check(q.ctx, q.authorizer, a) == nil {
				return
			}
		}
	}
	for _, key := range keys {
		for _, value := range extra[key] {
			q.may(authenticationGroup, "userextras", key, value)
		}
	}
}

// wrongExtra returns why an extra key cannot be impersonated in constrained modes.
func wrongExtra(key string, values []string) string {
	switch errs := validation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key); {
	case key == "":
		return "impersonating the empty string key in extra is not allowed"
	case len(errs) > 0:
		return fmt.Sprintf("impersonating an invalid key in extra is not allowed: %v", errs.ToAggregate())
	case len(values) == 0:
		return "impersonating empty values in extra is not allowed"
	case slices.Contains(values, ""):
		return "impersonating the empty string value in extra is not allowed"
	}
	return ""
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}
