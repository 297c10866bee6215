// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// SystemPriorityClasses makes the PriorityClasses that every cluster has.
func SystemPriorityClasses(d component.Deps) component.Component {
	return component.Component{
		Name:   "system priority classes",
		Health: component.Hooks(d.Progress.Booted, "scheduling/bootstrap-system-priority-classes"),
		Boot: func(view storage.View, now time.Time) (writes []storage.Write, _ []step.Request, _ error) {
			for _, c := range []struct{ name, value, about string }{
				{"system-node-critical", "2000001000", "Used for system critical pods that must not be moved from their current node."},
				{"system-cluster-critical", "2000000000", "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."},
			} {
				key := storage.Key{Bucket: "scheduling.k8s.io/priorityclasses", Name: c.name}
				if view.Get(key) != nil {
					continue
				}
				writes = append(writes, step.Creation{
					Key: key, APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass", Name: c.name, UID: d.Entropy.UID(), At: now, Generation: 1,
					Manager: "kube-apiserver", Fields: `{"f:description":{},"f:preemptionPolicy":{},"f:value":{}}`,
					Content: `"value":` + c.value + `,"description":"` + c.about + `","preemptionPolicy":"PreemptLowerPriority"`,
				}.Write())
			}
			return writes, nil, nil
		},
	}
}
