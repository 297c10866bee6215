// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"slices"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
)

// Component returns CustomResourceDefinitions.
func (d *Definitions) Component(p component.Progress) component.Component {
	return component.Component{
		Name:      "custom resource definitions",
		Resources: []*resource.Resource{d.Resource()},
		Load:      d.Load,
		Follows:   []string{Bucket},
		Lead:      d.lead,
		Health: slices.Concat(
			component.Hooks(p.Booted, "start-apiextensions-informers"),
			component.Hooks(p.Running, "start-apiextensions-controllers"),
			component.Hooks(p.Booted, "crd-informer-synced"),
		),
	}
}

// TerminationComponent refuses new objects of definitions that are being deleted.
func (d *Definitions) TerminationComponent() component.Component {
	return component.Component{Name: "termination of custom resource definitions", Admission: d}
}
