// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"slices"
	"testing"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/rbac"
)

func TestCertificateAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			d.Authorizer = auth.Authorizers{auth.AllowMasters{}, rbac.New(d.Store)}
			return slices.Concat(
				component.List{
					{Name: "kinds", Resources: core.Resources()},
					certificates.Component(*d), component.Controller(certificates.NewCleaner()),
				},
				certificates.Plugins(*d),
			)
		},
		Names: []string{"certificates", "kinds-trustbundles", "kinds-podcertificates"},
	}.Run(t)
}
