// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
)

// Provide returns the resources with the one of Namespaces changed such that
// what the keepers keep is there when the creation of a namespace returns. The
// others are as they were.
//
// A request that is not carried out does not fail the creation: the controllers
// make up for it.
func Provide(resources []*resource.Resource, send step.Sender, keepers ...*Keeper) []*resource.Resource {
	out := slices.Clone(resources)
	for i, r := range out {
		if r.Group != "" || r.Plural != namespaces {
			continue
		}
		provided := *r
		provided.Committed = func(ctx context.Context, change resource.Change) error {
			ns, ok := change.Object.(*corev1.Namespace)
			if !ok || change.Old != nil || change.Deleted {
				return nil
			}
			for _, k := range keepers {
				if request, err := k.Request(ns.Name); err == nil {
					_ = send(ctx, request) // the controller sends it again
				}
			}
			return nil
		}
		out[i] = &provided
	}
	return out
}
