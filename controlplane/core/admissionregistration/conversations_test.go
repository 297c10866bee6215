// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration_test

import (
	"testing"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/core/admissionregistration"
	"github.com/steer-dev/steer/controlplane/rbac"
)

func TestRegistrationAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			d.Authorizer = auth.Authorizers{auth.AllowMasters{}, rbac.New(d.Store)}
			return component.List{
				{Name: "kinds", Resources: core.Resources()},
				admissionregistration.Parameters{Authorizer: d.Authorizer, Store: d.Store, Catalog: d.Catalog}.Component(),
				component.Controller(admissionregistration.NewPolicyController(d.Server.Resources)),
			}
		},
		Of: []string{
			"validatingwebhookconfigurations.admissionregistration.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io",
			"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
			"mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		},
		Names: []string{"kinds-admission", "policies-validating", "policies-mutating", "policies-params"},
	}.Run(t)
}
