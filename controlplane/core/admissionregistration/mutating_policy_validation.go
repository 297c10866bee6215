// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"strings"

	"github.com/google/cel-go/cel"
	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

func (c *rules) validateMutatingPolicy(p, old *v1.MutatingAdmissionPolicy) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &p.Spec
	f := root.Child("spec")
	check := policyCheck{params: s.ParamKind != nil, compiler: c.Plain}
	if old != nil {
		check.rememberMutating(&old.Spec)
	}
	checkAbout(&f, s.FailurePolicy, s.ParamKind, s.MatchConstraints)
	if m := s.MatchConstraints; m != nil {
		at := f.Child("matchConstraints")
		checkMutable(&at, m)
	}
	if old == nil || !equality.Semantic.DeepEqual(s.ParamKind, old.Spec.ParamKind) ||
		!equality.Semantic.DeepEqual(s.MatchConditions, old.Spec.MatchConditions) {
		c.checkConditions(&f, conditions{list: s.MatchConditions, params: check.params, before: check.before.conditions})
	}
	check.variables(&f, s.Variables)
	list := f.Child("mutations")
	if len(s.Mutations) == 0 {
		list.Required(valid.Self, "mutations must contain at least one item")
	}
	for i := range s.Mutations {
		at := list.Index(i)
		check.mutation(&at, &s.Mutations[i])
	}
	valid.RequiredOf(&f, "reinvocationPolicy", s.ReinvocationPolicy, v1.IfNeededReinvocationPolicy, v1.NeverReinvocationPolicy)
	return errs
}

func (p *policyCheck) rememberMutating(s *v1.MutatingAdmissionPolicySpec) {
	p.before.conditions, p.before.configurations = expressionsOf(s.MatchConditions), sets.New[string]()
	for _, m := range s.Mutations {
		if m.ApplyConfiguration != nil {
			p.before.configurations.Insert(m.ApplyConfiguration.Expression)
		}
	}
}

// checkMutable checks that a match is of requests that can be changed.
func checkMutable(f *valid.Field, m *v1.MatchResources) {
	rules := f.Child("resourceRules")
	for _, r := range m.ResourceRules {
		for _, o := range r.Operations {
			valid.Supported(&rules, "operations", o, v1.OperationAll, v1.Connect, v1.Create, v1.Update)
		}
	}
}

func (p *policyCheck) mutation(f *valid.Field, m *v1.Mutation) {
	const (
		need   = "must be specified when patchType is "
		refuse = "must not be specified when patchType is "
	)
	switch m.PatchType {
	case "":
		f.Required("patchType", "")
	case v1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			f.Required("jsonPatch", need+"JSONPatch")
		} else {
			p.patch(f, "jsonPatch", m.JSONPatch.Expression, cel.ListType(cel.ObjectType("JSONPatch")))
		}
		if m.ApplyConfiguration != nil {
			f.Invalid("applyConfiguration", "{applyConfiguration}", refuse+"JSONPatch")
		}
	case v1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			f.Required("applyConfiguration", need+"ApplyConfiguration")
		} else {
			p.patch(f, "applyConfiguration", m.ApplyConfiguration.Expression, cel.ObjectType("Object"))
		}
		if m.JSONPatch != nil {
			f.Invalid("jsonPatch", "{jsonPatch}", refuse+"ApplyConfiguration")
		}
	default:
		valid.NotSupported(f, "patchType", m.PatchType, v1.PatchTypeApplyConfiguration, v1.PatchTypeJSONPatch)
	}
}

// patch checks an expression whose value is a change of the object.
func (p *policyCheck) patch(in *valid.Field, name, text string, returns *cel.Type) {
	f, trimmed := in.Child(name), strings.TrimSpace(text)
	if trimmed == "" {
		f.Required("expression", "")
		return
	}
	options := admissioncel.OptionalVariableDeclarations{HasParams: p.params, HasAuthorizer: true, HasPatchTypes: true}
	checkCompiled(&f, "expression", trimmed, p.compiler().CompileCELExpression(
		expression.Returning(trimmed, returns), options, stored(p.before.configurations, text)))
}

func validateMutatingBinding(b, _ *v1.MutatingAdmissionPolicyBinding) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &b.Spec
	f := root.Child("spec")
	f.NonEmpty("policyName", s.PolicyName)
	checkBound(&f, s.PolicyName, s.ParamRef, s.MatchResources)
	if s.MatchResources != nil {
		at := f.Child("matchResources")
		checkMutable(&at, s.MatchResources)
	}
	return errs
}
