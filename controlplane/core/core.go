// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package core describes the built-in kinds of Kubernetes to an API server:
// names, scope, verbs, defaults, rules of create and update, tables, field
// selectors, subresources.
//
// [Resources] returns them all. The values are immutable and shared by every
// server of the process; nothing is parsed, generated or reflected upon until a
// kind is first written.
//
// A kind is a [kind.Definition] value with the Go type of k8s.io/api and what is special about
// it. What all kinds have in common is in package kind, what rules have in common in
// package valid. The kinds with many rules have a package for each family, with a table
// of its kinds (see workload/workloads.go for the richest): admissionregistration,
// autoscaling, flowcontrol, networking, node, pod, resource, service, volume, workload. The
// others are here, each in a file of its own. docs/kinds.md says which rules of Kubernetes
// each kind has and which it does not have yet.
package core

import (
	"slices"
	"sync"

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

// Resources returns the built-in kinds. The slice belongs to the caller, the
// resources must not be changed.
func Resources() []*resource.Resource { return slices.Clone(resources()) }

var resources = sync.OnceValue(describe)

func describe() []*resource.Resource {
	return slices.Concat(
		[]*resource.Resource{namespaces(), configMaps(), secrets(), serviceAccounts(), leases()},
		eventKinds(),
		pod.Resources(),
		workload.Resources(),
		autoscaling.Resources(),
		service.Resources(),
		networking.Resources(),
		volume.Resources(),
		node.Resources(),
		[]*resource.Resource{podDisruptionBudgets(), resourceQuotas(), limitRanges(), storageVersionMigrations()},
		flowcontrol.Resources(),
		dra.Resources(),
		rbacKinds(),
		admissionregistration.Resources(),
	)
}
