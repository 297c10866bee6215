// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"

	"github.com/steer-dev/steer/apiserver/auth"
)

// ByRoles stands for roles and their bindings where the option of an authorizer is a list
// ([auth.Authorizers]). By itself it has no opinion.
type ByRoles struct{}

// Authorize implements [auth.Authorizer].
func (ByRoles) Authorize(context.Context, *auth.Attributes) (auth.Decision, string, error) {
	return auth.NoOpinion, "", nil
}

// Resolve returns an authorizer whose list, if it is one, has roles in the place of [ByRoles].
func Resolve(chosen auth.Authorizer, roles *Authorizer) auth.Authorizer {
	all, several := chosen.(auth.Authorizers)
	if !several {
		return chosen
	}
	out := make(auth.Authorizers, len(all))
	for i, a := range all {
		if out[i] = a; a == (ByRoles{}) {
			out[i] = roles
		}
	}
	return out
}
