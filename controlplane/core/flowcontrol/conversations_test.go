// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core/flowcontrol"
)

func TestFlowAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			return component.List{{Name: "kinds", Resources: flowcontrol.Resources()}, flowcontrol.BootComponent(*d), component.ServerController(flowcontrol.NewController())}
		},
		Names: []string{"kinds-flow", "kinds-flow-status"},
	}.Run(t)
}
