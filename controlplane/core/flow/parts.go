// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"time"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/storage"
)

// BootPart makes the FlowSchemas and PriorityLevelConfigurations of a fresh cluster.
func BootPart(d part.Deps) part.Part {
	return part.Part{
		Name:   "flow schemas of a fresh cluster",
		Health: part.Hooks(d.Progress.Booted, "priority-and-fairness-config-producer"),
		Boot: func(view storage.View, now time.Time) ([]storage.Write, []step.Request, error) {
			return Boot(view, d.Entropy.UID, now), nil, nil
		},
	}
}
