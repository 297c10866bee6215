// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/rbac"
)

// ByRoles stands for roles and their bindings where [Options.Authorizer] is a list
// ([auth.Authorizers]). By itself it has no opinion.
type ByRoles struct{}

// Authorize implements [auth.Authorizer].
func (ByRoles) Authorize(context.Context, *auth.Attributes) (auth.Decision, string, error) {
	return auth.NoOpinion, "", nil
}

// authorizer returns that of the options over the roles of a plane.
func (o *Options) authorizer(roles *rbac.Authorizer) auth.Authorizer {
	if o.Authorizer == nil {
		return auth.Authorizers{auth.AllowMasters{}, roles}
	}
	all, several := o.Authorizer.(auth.Authorizers)
	if !several {
		return o.Authorizer
	}
	out := make(auth.Authorizers, len(all))
	for i, a := range all {
		if out[i] = a; a == (ByRoles{}) {
			out[i] = roles
		}
	}
	return out
}
