// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// The names of the plugins.
const (
	MutatingName   = "MutatingAdmissionWebhook"
	ValidatingName = "ValidatingAdmissionWebhook"
)

// Parts returns the two plugins. They share the dependencies of matching, and the
// compiler of match conditions, with others.
func Parts(d component.Deps, m *match.Deps, expressions *expression.Compiler) (mutating, validating component.Component) {
	of := func(step string) caller {
		return caller{step: step, client: d.Webhooks, newUID: d.Entropy.UID, log: d.Logger()}
	}
	a, b := of(stepAdmit), of(stepValidate)
	a.metrics, a.answers = newMetrics(d), &decoder{}
	b.metrics, b.answers = a.metrics, a.answers
	const group = "admissionregistration.k8s.io/"
	first := &Mutating{caller: a, d: m, hooks: newConfigurations(d.Store, m, group+"mutatingwebhookconfigurations",
		(&compiler{expressions: whenUsed{expressions}, plugin: MutatingName, step: stepAdmit}).mutating)}
	second := &Validating{caller: b, d: m, hooks: newConfigurations(d.Store, m, group+"validatingwebhookconfigurations",
		(&compiler{expressions: whenUsed{expressions}, plugin: ValidatingName, step: stepValidate}).validating)}
	mutating, validating = component.Plugin(MutatingName, first), component.Plugin(ValidatingName, second)
	mutating.Repeats = true
	return mutating, validating
}

// whenUsed makes the environment of expressions when the first one is compiled: most
// control planes have none.
type whenUsed struct{ *expression.Compiler }

// CompileCELExpression implements admissioncel.Compiler.
func (c whenUsed) CompileCELExpression(e admissioncel.ExpressionAccessor, o admissioncel.OptionalVariableDeclarations, mode environment.Type) admissioncel.CompilationResult {
	return c.Plain().CompileCELExpression(e, o, mode)
}
