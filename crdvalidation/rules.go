// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

func hasLineBreak(s string) bool { return strings.ContainsAny(s, "\n\r") }

// ruleTexts validates the fields of rules other than their expressions.
func (w *schemaWalk) ruleTexts(s *apiextensions.JSONSchemaProps, in *field.Path) {
	for i := range s.XValidations {
		r, at := &s.XValidations[i], in.Child("x-kubernetes-validations").Index(i)
		rule, message := strings.TrimSpace(r.Rule), strings.TrimSpace(r.Message)
		switch {
		case rule == "":
			w.required(at.Child("rule"), "rule is not specified")
		case r.Message != "" && message == "":
			w.invalid(at.Child("message"), r.Message, "must be non-empty if specified")
		case hasLineBreak(message):
			w.invalid(at.Child("message"), r.Message, "must not contain line breaks")
		case hasLineBreak(rule) && message == "":
			w.required(at.Child("message"), "message must be specified if rule contains line breaks")
		}
		if r.MessageExpression != "" && strings.TrimSpace(r.MessageExpression) == "" {
			w.required(at.Child("messageExpression"), "messageExpression must be non-empty if specified")
		}
		if r.Reason != nil {
			supported(w.checker, at.Child("reason"), *r.Reason, apiextensions.FieldValueDuplicate,
				apiextensions.FieldValueForbidden, apiextensions.FieldValueInvalid, apiextensions.FieldValueRequired)
		}
		if r.FieldPath != "" {
			w.fieldPath(s, r.FieldPath, at.Child("fieldPath"))
		}
	}
}

// fieldPath validates the fieldPath of a rule.
func (w *schemaWalk) fieldPath(s *apiextensions.JSONSchemaProps, path string, at *field.Path) {
	if strings.TrimSpace(path) == "" {
		w.invalid(at, path, "must be non-empty if specified")
	}
	if hasLineBreak(path) {
		w.invalid(at, path, "must not contain line breaks")
	}
	ss, err := schema.NewStructural(s)
	if err != nil {
		return // it is reported elsewhere
	}
	if _, _, err := cel.ValidFieldPath(path, ss); err != nil {
		w.invalid(at, path, "must be a valid path")
	}
}

// rules compiles the rules of a node, and estimates their cost.
func (w *schemaWalk) rules(s *apiextensions.JSONSchemaProps, in *field.Path, p position) {
	at := in.Child("x-kubernetes-validations")
	fail := func(err *field.Error) { w.ruleErrs = append(w.ruleErrs, err) }
	typed, err := p.scope.types()
	if err != nil {
		fail(field.InternalError(at, fmt.Errorf("internal error: failed to construct type information for x-kubernetes-validations rules: %w", err)))
		return
	}
	results, err := cel.Compile(typed.schema, typed.decl, celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), w.ratchet.known)
	if err != nil {
		fail(field.InternalError(at, err))
		return
	}
	for i := range results {
		r, rule, at := &results[i], &s.XValidations[i], at.Index(i)
		if err := w.cost(at.Child("rule"), "estimated rule cost", p.scope.times(r)); err != nil {
			fail(err)
		}
		switch {
		case r.Error == nil:
		case r.Error.Type == apiservercel.ErrorTypeRequired:
			fail(field.Required(at.Child("rule"), r.Error.Detail))
		default:
			fail(field.Invalid(at.Child("rule"), *rule, r.Error.Detail))
		}
		switch {
		case r.MessageExpressionError != nil:
			fail(field.Invalid(at.Child("messageExpression"), *rule, r.MessageExpressionError.Detail))
		case r.MessageExpression != nil:
			if err := w.cost(at.Child("messageExpression"), "estimated messageExpression cost", r.MessageExpressionMaxCost); err != nil {
				fail(err)
			}
		}
		switch {
		case r.UsesOldSelf && p.loose != nil:
			fail(field.Invalid(at.Child("rule"), rule.Rule, fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %v", p.loose)))
		case !r.UsesOldSelf && rule.OptionalOldSelf != nil:
			fail(field.Invalid(at.Child("optionalOldSelf"), *rule.OptionalOldSelf, "may not be set if oldSelf is not used in rule"))
		}
	}
}

// Costs are in units of CEL.
const (
	maxRuleCost  = 10_000_000
	maxTotalCost = 100_000_000
	// notable is the least cost that is listed if the total is too high.
	notable = maxTotalCost / 100
	// maxListed is how many rules are listed at most.
	maxListed = 4
)

// costs of all rules of one schema.
type costs struct {
	sum   uint64
	worst []ruleCost // the highest first
}

type ruleCost struct {
	at   *field.Path
	cost uint64
}

// cost adds the cost of an expression, and returns an error if it alone exceeds the
// limit.
func (w *schemaWalk) cost(at *field.Path, what string, cost uint64) *field.Error {
	w.costs.add(at, cost)
	if cost <= maxRuleCost || w.costly {
		return nil
	}
	return field.Forbidden(at, overBudget(what, cost, maxRuleCost))
}

func (c *costs) add(at *field.Path, cost uint64) {
	c.sum += min(cost, math.MaxUint64-c.sum)
	if cost < notable {
		return
	}
	i := slices.IndexFunc(c.worst, func(r ruleCost) bool { return r.cost < cost })
	if i < 0 {
		i = len(c.worst)
	}
	c.worst = slices.Insert(c.worst, i, ruleCost{at, cost})
	c.worst = c.worst[:min(len(c.worst), maxListed)]
}

// total validates the cost of all rules of a schema together.
func (c *checker) total(all *costs, at *field.Path) {
	if all.sum <= maxTotalCost {
		return
	}
	for _, r := range all.worst {
		c.forbidden(r.at, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema")
	}
	c.forbidden(at, overBudget("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", all.sum, maxTotalCost))
}

// overBudget formats by how much a limit is exceeded. Far above it the factor is
// capped; just above it, a factor of 1.0 would look like no excess.
func overBudget(what string, cost, limit uint64) string {
	const far, near = 100, 1.5
	times := float64(cost) / float64(limit)
	factor := fmt.Sprintf("%.1fx", times)
	switch {
	case times > far:
		factor = fmt.Sprintf("more than %dx", far)
	case times < near:
		factor = fmt.Sprintf("%fx", times)
	}
	return what + " exceeds budget by factor of " + factor +
		" (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
}
