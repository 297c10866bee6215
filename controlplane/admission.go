// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/namespace"
)

// admissions returns the chain of the plane, in the order of Kubernetes: what
// resolves classes and limits, then the caller's own. allocator gives Services
// their addresses, refusal looks after definitions.
func (p *Plane) admissions(allocator, refusal apiserver.Admission) apiserver.Admission {
	chain := append(apiserver.Admissions{namespace.Lifecycle{Store: p.store}}, admission.Chain(p.store)...)
	chain = append(chain, allocator, refusal)
	if p.options.Admission != nil {
		chain = append(chain, p.options.Admission)
	}
	return chain
}
