// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"strings"
)

// Authorizers asks each in turn; the first with an opinion decides.
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

// AllowMasters allows everything to the group system:masters.
type AllowMasters struct{}

// Authorize implements [Authorizer].
func (AllowMasters) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if a.User.In(Masters) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

// AllowPaths allows everybody to get some paths outside the resource API. A
// path that ends in /* covers all below it.
type AllowPaths []string

// Authorize implements [Authorizer].
func (paths AllowPaths) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if a.ResourceRequest || a.Verb != "get" && a.Verb != "head" {
		return NoOpinion, "", nil
	}
	for _, p := range paths {
		if prefix, all := strings.CutSuffix(p, "*"); p == a.Path || all && strings.HasPrefix(a.Path, prefix) {
			return Allow, "", nil
		}
	}
	return NoOpinion, "", nil
}

// AllowAll allows everything to everybody; for tests and private processes.
type AllowAll struct{}

// Authorize implements [Authorizer].
func (AllowAll) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return Allow, "", nil
}
