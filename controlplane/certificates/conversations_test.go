// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/controlplane/part/parttest"
)

func TestCertificateSigningRequestAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	parttest.Conversations{
		Parts: func(d *part.Deps) part.List {
			return append(part.List{certificates.Part(), part.Controller(certificates.NewCleaner())}, certificates.Plugins(*d)...)
		},
		Names: []string{"certificates"},
	}.Run(t)
}
