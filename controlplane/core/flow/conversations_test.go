// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core/flow"
	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/controlplane/part/parttest"
)

func TestFlowAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	parttest.Conversations{
		Parts: func(d *part.Deps) part.List {
			return part.List{{Name: "kinds", Resources: flow.Resources()}, flow.BootPart(*d), part.ServerController(flow.NewController())}
		},
		Names: []string{"kinds-flow", "kinds-flow-status"},
	}.Run(t)
}
