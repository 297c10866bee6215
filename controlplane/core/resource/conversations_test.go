// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core/resource"
)

func TestDeviceTaintRuleAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(*component.Deps) component.List {
			return component.List{{Name: "kinds", Resources: resource.Resources()}}
		},
		Names: []string{"kinds-taintrules"},
	}.Run(t)
}
