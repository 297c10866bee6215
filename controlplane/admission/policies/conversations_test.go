// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"slices"
	"testing"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/admission/policies"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/internal/expression"
	"github.com/steer-dev/steer/controlplane/namespace"
	"github.com/steer-dev/steer/controlplane/rbac"
)

func TestPolicyAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			d.Authorizer = auth.Authorizers{auth.AllowMasters{}, rbac.New(d.Store)}
			mutating, validating := policies.Parts(*d, match.NewDeps(*d), new(expression.Compiler))
			return slices.Concat(
				component.List{{Name: "kinds", Resources: core.Resources()}},
				admission.Plugins(*d),
				component.List{namespace.SystemComponent(*d), mutating, validating},
			)
		},
		Names: []string{"policies-matching", "policies-mutating", "policies-params", "policies-validating"},
		Except: map[string]string{
			"policies-mutating/hooked*":              "the server has no webhooks",
			"policies-params/custom":                 "the server has no custom resources",
			"policies-params/changed-custom":         "as above",
			"policies-params/mutate-custom":          "as above",
			"policies-params/cluster":                "as above",
			"policies-params/cluster-with-namespace": "as above",
		},
	}.Run(t)
}
