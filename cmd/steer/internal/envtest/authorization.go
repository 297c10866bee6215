// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/steer-dev/steer/apiserver/auth"
)

// authorizerOf returns the authorizer for the modes; nil is the plane's own, by
// roles. The first mode that allows something decides, so their order does not
// matter.
func authorizerOf(modes []string, policyFile string) (auth.Authorizer, error) {
	var open, roles, lines bool
	var last auth.Authorizers
	for _, mode := range modes {
		switch mode {
		case "Node":
		case "AlwaysDeny":
			last = auth.Authorizers{alwaysDeny{}}
		case "RBAC":
			roles = true
		case "AlwaysAllow":
			open = true
		case "ABAC":
			lines = true
		case "Webhook":
			return nil, fmt.Errorf("--authorization-mode: %s is not implemented: use RBAC or AlwaysAllow", mode)
		default:
			return nil, fmt.Errorf("--authorization-mode: there is no mode %q: use RBAC or AlwaysAllow", mode)
		}
	}
	switch {
	case lines != (policyFile != ""):
		return nil, errors.New("--authorization-mode=ABAC and --authorization-policy-file belong together: give both or none")
	case lines && roles:
		return nil, errors.New("--authorization-mode: ABAC beside RBAC is not implemented: use one of them")
	case open:
		return auth.Authorizers{allowKnown{}, auth.AllowPaths(openPaths())}, nil
	case lines:
		read, err := readPolicies(policyFile)
		if err != nil {
			return nil, fmt.Errorf("--authorization-policy-file: %w", err)
		}
		return append(auth.Authorizers{auth.AllowMasters{}, read}, last...), nil
	case roles:
		return nil, nil
	}
	return append(auth.Authorizers{auth.AllowMasters{}}, last...), nil
}

// openPaths are those that a request without credentials may ask for in the mode AlwaysAllow.
func openPaths() []string { return []string{"/healthz", "/livez", "/readyz", "/version", "/version/"} }

// alwaysDeny allows nothing, in the words of kube-apiserver.
type alwaysDeny struct{}

// Authorize implements [auth.Authorizer].
func (alwaysDeny) Authorize(context.Context, *auth.Attributes) (auth.Decision, string, error) {
	return auth.NoOpinion, "alwaysdeny: Everything is forbidden.", nil
}

// Rules implements [auth.RuleLister].
func (alwaysDeny) Rules(context.Context, *auth.User, string) (auth.Rules, error) {
	return auth.Rules{}, nil
}

// allowKnown allows everything to users who have shown who they are, and answers a review
// of any other user but the anonymous one alike: a review may name no groups.
type allowKnown struct{}

func known(u *auth.User) bool { return u.Name != auth.Anonymous && !u.In(auth.Unauthenticated) }

// Authorize implements [auth.Authorizer].
func (allowKnown) Authorize(_ context.Context, a *auth.Attributes) (auth.Decision, string, error) {
	if known(a.User) {
		return auth.Allow, "", nil
	}
	return auth.NoOpinion, "", nil
}

// Rules implements [auth.RuleLister].
func (allowKnown) Rules(ctx context.Context, user *auth.User, namespace string) (auth.Rules, error) {
	if known(user) {
		return auth.AllowAll{}.Rules(ctx, user, namespace)
	}
	return auth.Rules{}, nil
}
