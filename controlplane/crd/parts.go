// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"slices"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/part"
)

// Part returns CustomResourceDefinitions.
func (d *Definitions) Part(p part.Progress) part.Part {
	return part.Part{
		Name:      "custom resource definitions",
		Resources: []*resource.Resource{d.Resource()},
		Load:      d.Load,
		Follows:   []string{Bucket},
		Lead:      d.lead,
		Health: slices.Concat(
			part.Hooks(p.Booted, "start-apiextensions-informers"),
			part.Hooks(p.Running, "start-apiextensions-controllers"),
			part.Hooks(p.Booted, "crd-informer-synced"),
		),
	}
}

// TerminationPart refuses new objects of definitions that are being deleted.
func (d *Definitions) TerminationPart() part.Part {
	return part.Part{Name: "termination of custom resource definitions", Admission: d}
}
