// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
)

func TestCertificateSigningRequestAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			return append(component.List{certificates.Part(), component.Controller(certificates.NewCleaner())}, certificates.Plugins(*d)...)
		},
		Names: []string{"certificates"},
	}.Run(t)
}
