// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package auth authenticates and authorizes requests.
//
// An [Authenticator] returns the [User] of a request, an [Authorizer] decides on
// [Attributes]. The package implements both for client certificates, bearer tokens,
// front proxies, anonymous users and impersonation, and always allows the group
// system:masters. Others (RBAC, service accounts, webhooks) implement the interfaces.
package auth

import (
	"context"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
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

// User is the authenticated user of a request. It is immutable once attached to a
// request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// In reports whether the user is in a group.
func (u *User) In(group string) bool { return u != nil && slices.Contains(u.Groups, group) }

// Info returns the user as the API has it. It is empty for nil.
func (u *User) Info() authenticationv1.UserInfo {
	if u == nil {
		return authenticationv1.UserInfo{}
	}
	out := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[key] = values
	}
	return out
}

// Authenticator authenticates a request. It returns nil without an error if the request
// has no credentials that it knows, and an error if they are invalid.
type Authenticator interface {
	Authenticate(r *http.Request) (*User, error)
}

// Authorizer decides whether a request is allowed.
type Authorizer interface {
	// Authorize returns the decision and the reason for it, which is part of the
	// message of a refusal.
	Authorize(ctx context.Context, a *Attributes) (Decision, string, error)
}

// RuleLister is implemented by authorizers that can list what a user may do.
type RuleLister interface {
	// Rules returns the rules of a user in a namespace. With an error they are those
	// that could be found.
	Rules(ctx context.Context, user *User, namespace string) (Rules, error)
}

// Rules are the rules that apply to a user.
type Rules struct {
	Resource    []authorizationv1.ResourceRule
	NonResource []authorizationv1.NonResourceRule
	// Incomplete reports that there may be further rules, which cannot be listed.
	Incomplete bool
}

// Decision of an authorizer.
type Decision int

// The decisions. The zero value is no opinion, which refuses unless another authorizer
// allows.
const (
	NoOpinion Decision = iota
	Allow
	Deny
)

// Attributes describe a request to an authorizer.
type Attributes struct {
	User *User
	// Verb: get, list, watch, create, update, patch, delete, deletecollection,
	// impersonate, ..., or the HTTP method in lower case.
	Verb string
	// ResourceRequest reports whether the fields down to Name are set, or Path.
	ResourceRequest bool
	Group           string
	Version         string
	Resource        string
	Subresource     string
	Namespace       string
	Name            string
	// Selected returns the requirements of the selectors of a list, watch or
	// deletecollection; nil for other requests and without selectors. Invalid selectors
	// have no requirements. Parsing costs a few hundred times the length, which the
	// client chooses: call it after everything else was decided. An authorizer that
	// does not call it decides on all objects.
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
