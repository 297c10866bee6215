// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"time"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// System returns the names of the namespaces that every cluster has.
func System() []string { return []string{"default", "kube-system", "kube-public", "kube-node-lease"} }

// SystemComponent makes the namespaces that every cluster has.
func SystemComponent(d component.Deps) component.Component {
	return component.Component{
		Name:   "system namespaces",
		Health: component.Hooks(d.Progress.Booted, "start-system-namespaces-controller"),
		Boot: func(view storage.View, now time.Time) (writes []storage.Write, _ []step.Request, _ error) {
			for _, name := range System() {
				key := storage.Key{Bucket: Bucket, Name: name}
				if view.Get(key) != nil {
					continue
				}
				writes = append(writes, step.Creation{
					Key: key, APIVersion: "v1", Kind: "Namespace", Name: name, UID: d.Entropy.UID(), At: now,
					Labels:  `{"kubernetes.io/metadata.name":"` + name + `"}`,
					Manager: "kube-apiserver", Fields: `{"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}`,
					Content: `"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}`,
				}.Write())
			}
			return writes, nil, nil
		},
	}
}

// Plugin returns the admission plugin NamespaceLifecycle.
func Plugin(d component.Deps) component.Component {
	return component.Plugin("NamespaceLifecycle", Lifecycle{Store: d.Store})
}
