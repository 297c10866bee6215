// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// The names of the plugins.
const (
	MutatingName   = "MutatingAdmissionPolicy"
	ValidatingName = "ValidatingAdmissionPolicy"
)

// Parts returns the two plugins. They share the dependencies of matching, and the
// compiler of expressions, with the plugins of webhooks.
func Parts(d component.Deps, m *match.Deps, expressions *expression.Compiler) (mutating, validating component.Component) {
	parameters := newParameters(d.Server, d.Store)
	second := &Validating{
		set: newSet(d.Store, m, &programs{compiler: expressions}, kinds{
			"validatingadmissionpolicies", "validatingadmissionpolicybindings", decodeValidating, decodeValidatingBinding,
		}),
		parameters: parameters, metrics: newMetrics("validating", "enforcement_action"), log: d.Logger(),
	}
	first := &Mutating{
		set: newSet(d.Store, m, &programs{compiler: expressions}, kinds{
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", decodeMutating, decodeMutatingBinding,
		}),
		parameters: parameters, metrics: newMetrics("mutating"),
	}
	d.Measure(first.metrics.checks, first.metrics.seconds, second.metrics.checks, second.metrics.seconds)
	mutating, validating = component.Plugin(MutatingName, first), component.Plugin(ValidatingName, second)
	mutating.Repeats = true
	return mutating, validating
}
