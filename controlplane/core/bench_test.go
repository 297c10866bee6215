// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/admissionregistration"
	"github.com/steer-dev/steer/controlplane/core/autoscaling"
	"github.com/steer-dev/steer/controlplane/core/flowcontrol"
	"github.com/steer-dev/steer/controlplane/core/networking"
	"github.com/steer-dev/steer/controlplane/core/node"
	"github.com/steer-dev/steer/controlplane/core/pod"
	dra "github.com/steer-dev/steer/controlplane/core/resource"
	"github.com/steer-dev/steer/controlplane/core/service"
	"github.com/steer-dev/steer/controlplane/core/volume"
	"github.com/steer-dev/steer/controlplane/core/workload"
)

// BenchmarkResources is what the descriptions of the kinds of all families cost a process
// before anything is written: those of this package itself are made once.
func BenchmarkResources(b *testing.B) {
	for b.Loop() {
		for _, describe := range []func() []*resource.Resource{
			autoscaling.Resources, dra.Resources, flowcontrol.Resources, networking.Resources, node.Resources, pod.Resources,
			admissionregistration.Resources, service.Resources, volume.Resources, workload.Resources,
		} {
			describe()
		}
	}
}
