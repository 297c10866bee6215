// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Authorizers calls each in turn; the first with an opinion decides.
type Authorizers []Authorizer

// Authorize implements [Authorizer].
func (all Authorizers) Authorize(ctx context.Context, a *Attributes) (Decision, string, error) {
	var reasons []string
	var failed error
	for _, authorizer := range all {
		decision, reason, err := authorizer.Authorize(ctx, a)
		if decision != NoOpinion {
			return decision, reason, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
		if failed == nil {
			failed = err
		}
	}
	return NoOpinion, strings.Join(reasons, "\n"), failed
}

// Rules implements [RuleLister]: the rules of all members. They are incomplete if a
// member neither lists rules nor is [AllowMasters] or [AllowPaths], whose rules are not
// listed.
func (all Authorizers) Rules(ctx context.Context, user *User, namespace string) (Rules, error) {
	var out Rules
	var failed []error
	for _, authorizer := range all {
		switch a := authorizer.(type) {
		case AllowMasters, AllowPaths:
		case RuleLister:
			more, err := a.Rules(ctx, user, namespace)
			if err != nil {
				failed = append(failed, err)
			}
			out.Resource = append(out.Resource, more.Resource...)
			out.NonResource = append(out.NonResource, more.NonResource...)
			out.Incomplete = out.Incomplete || more.Incomplete
		default:
			out.Incomplete = true
		}
	}
	return out, utilerrors.NewAggregate(failed)
}

// AllowMasters allows everything to the group system:masters.
type AllowMasters struct{}

// Authorize implements [Authorizer].
func (AllowMasters) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if a.User.In(Masters) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

// AllowPaths allows every user to get some paths outside the resource API. A path that
// ends in /* covers everything below it.
type AllowPaths []string

// Authorize implements [Authorizer].
func (paths AllowPaths) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if a.ResourceRequest || a.Verb != "get" && a.Verb != "head" {
		return NoOpinion, "", nil
	}
	for _, p := range paths {
		if MatchesPath(p, a.Path) {
			return Allow, "", nil
		}
	}
	return NoOpinion, "", nil
}

// MatchesPath reports whether a path outside the resource API is the one of a pattern, or begins
// with it where the pattern ends in a star.
func MatchesPath(pattern, path string) bool {
	return pattern == path || strings.HasSuffix(pattern, "*") && strings.HasPrefix(path, strings.TrimRight(pattern, "*"))
}

// AllowAll allows every request; for tests and private processes.
type AllowAll struct{}

// Authorize implements [Authorizer].
func (AllowAll) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return Allow, "", nil
}

// Rules implements [RuleLister].
func (AllowAll) Rules(context.Context, *User, string) (Rules, error) {
	star := []string{"*"}
	return Rules{
		Resource:    []authorizationv1.ResourceRule{{Verbs: star, APIGroups: star, Resources: star}},
		NonResource: []authorizationv1.NonResourceRule{{Verbs: star, NonResourceURLs: star}},
	}, nil
}
