// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"time"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// BootComponent makes the FlowSchemas and PriorityLevelConfigurations of a fresh cluster.
func BootComponent(d component.Deps) component.Component {
	return component.Component{
		Name:   "flow schemas of a fresh cluster",
		Health: component.Hooks(d.Progress.Booted, "priority-and-fairness-config-producer"),
		Boot: func(view storage.View, now time.Time) ([]storage.Write, []step.Request, error) {
			return Boot(view, d.Entropy.UID, now), nil, nil
		},
	}
}
