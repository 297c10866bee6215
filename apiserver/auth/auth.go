// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package auth tells who makes a request and whether they may.
//
// An [Authenticator] turns a request into a [User], an [Authorizer] decides on
// [Attributes]. Both are small interfaces with ready-made forms here: client
// certificates, static tokens, anonymous users, impersonation; always allowing
// the group system:masters. Anything else (roles, service accounts, webhooks)
// plugs in by implementing them.
package auth

import (
	"context"
	"net/http"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Well-known users and groups.
const (
	Anonymous       = "system:anonymous"
	Masters         = "system:masters"
	Authenticated   = "system:authenticated"
	Unauthenticated = "system:unauthenticated"
)

// User is who makes a request. It is immutable once attached to a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// In reports whether the user is in a group.
func (u *User) In(group string) bool { return u != nil && slices.Contains(u.Groups, group) }

// Authenticator finds the user of a request. It returns nil without an error
// when the request carries no credentials that it knows, and an error when it
// carries wrong ones.
type Authenticator interface {
	Authenticate(r *http.Request) (*User, error)
}

// Authorizer decides whether a request may go on.
type Authorizer interface {
	// Authorize returns the decision and the reason for it, which is shown to
	// the user in the message of a refusal.
	Authorize(ctx context.Context, a *Attributes) (Decision, string, error)
}

// RuleLister is implemented by authorizers that can list what a user may do.
type RuleLister interface {
	// Rules returns what a user may do in a namespace. With an error the rules
	// are those that could be found.
	Rules(ctx context.Context, user *User, namespace string) (Rules, error)
}

// Rules are what a user may do.
type Rules struct {
	Resource    []authorizationv1.ResourceRule
	NonResource []authorizationv1.NonResourceRule
	// Incomplete tells that there may be more, which can only be asked about.
	Incomplete bool
}

// Decision of an authorizer.
type Decision int

// The decisions. The zero value is no opinion, which refuses when nobody else
// allows.
const (
	NoOpinion Decision = iota
	Allow
	Deny
)

// Attributes are what an authorizer decides on.
type Attributes struct {
	User *User
	// Verb: get, list, watch, create, update, patch, delete, deletecollection,
	// impersonate, ..., or the HTTP method in lower case.
	Verb string
	// ResourceRequest reports whether the fields down to Name count, or Path.
	ResourceRequest bool
	Group           string
	Version         string
	Resource        string
	Subresource     string
	Namespace       string
	Name            string
	// Selected reads what the objects of a list, watch or deletecollection are limited
	// to; nil for other requests and for no limit. It returns nothing of a selector that
	// cannot be read. Selectors may be as long as their sender likes, and reading one
	// costs a few hundred times its length: look at what else decides first. An
	// authorizer that does not call it decides on all objects.
	Selected func() (fields.Requirements, labels.Requirements)
	// Path of requests outside the resource API.
	Path string
}

type userKey struct{}

// WithUser attaches the user to a context.
func WithUser(ctx context.Context, u *User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns the user of a context, or nil.
func UserFrom(ctx context.Context) *User {
	u, _ := ctx.Value(userKey{}).(*User)
	return u
}
