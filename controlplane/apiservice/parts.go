// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"slices"
	"time"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// New returns the aggregation of a control plane.
func New(d component.Deps, identity Identity) *Aggregation {
	a := NewAggregation(d.Store, d.Server, d.Webhooks.Services(), identity, d.Logger())
	d.Measure(a.metrics)
	return a
}

// DiscoveryComponent returns the controller that asks other servers what they serve.
func (a *Aggregation) DiscoveryComponent() component.Component {
	out := component.ServerController(NewDiscovery(a))
	out.OnEachServer = true
	return out
}

// Component returns APIServices, and makes those of what the server has when it starts.
func (a *Aggregation) Component(d component.Deps) component.Component {
	return component.Component{
		Name:      "api services",
		Resources: []*resource.Resource{a.Resource()},
		Boot: func(view storage.View, now time.Time) ([]storage.Write, []step.Request, error) {
			writes, restore := Boot(view, d.Server.Resources(), d.Entropy.UID, now)
			return writes, restore, nil
		},
		Load:    a.Load,
		Follows: []string{Bucket},
		Close:   a.Close,
		Health: slices.Concat(
			component.Hooks(d.Progress.Booted, "start-kube-aggregator-informers"),
			component.Hooks(d.Progress.Running, "apiservice-status-local-available-controller", "apiservice-status-remote-available-controller",
				"apiservice-registration-controller", "apiservice-discovery-controller", "kube-apiserver-autoregistration"),
			[]apiserver.Check{{Name: "autoregister-completion", Run: d.Progress.Booted}},
			component.Hooks(d.Progress.Booted, "apiservice-openapi-controller", "apiservice-openapiv3-controller"),
		),
	}
}
