// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

const all = "*"

// checkRule has the rules of which requests are meant.
func checkRule(f *valid.Field, r *v1.RuleWithOperations) {
	const alone = "if '*' is present, must not specify other "
	operations := f.Child("operations")
	if len(r.Operations) == 0 {
		operations.Required(valid.Self, "")
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, v1.OperationAll) {
		operations.Invalid(valid.Self, r.Operations, alone+"operations")
	}
	for i, o := range r.Operations {
		at := operations.Index(i)
		valid.Supported(&at, valid.Self, o, v1.OperationAll, v1.Connect, v1.Create, v1.Delete, v1.Update)
	}
	lists := func(name, what string, values []string) {
		if len(values) == 0 {
			f.Required(name, "")
		}
		if len(values) > 1 && slices.Contains(values, all) {
			f.Invalid(name, values, alone+what)
		}
	}
	lists("apiGroups", "API groups", r.APIGroups)
	lists("apiVersions", "API versions", r.APIVersions)
	versions := f.Child("apiVersions")
	for i, v := range r.APIVersions {
		at := versions.Index(i)
		at.NonEmpty(valid.Self, v)
	}
	resources := f.Child("resources")
	checkResources(&resources, r.Resources)
	if r.Scope != nil {
		valid.Supported(f, "scope", *r.Scope, v1.AllScopes, v1.ClusterScope, v1.NamespacedScope)
	}
}

// checkResources has the rules of resources and subresources of which one may
// not say again what another says already.
func checkResources(f *valid.Field, resources []string) {
	if len(resources) == 0 {
		f.Required(valid.Self, "")
	}
	every, whole := sets.New[string](), sets.New[string]() // subresources of a resource, resources with a subresource
	last := ""
	for i, r := range resources {
		at := f.Index(i)
		if !at.NonEmpty(valid.Self, r) {
			continue
		}
		name, sub, ok := strings.Cut(r, "/")
		if !ok {
			last = r
			continue
		}
		if every.Has(name) {
			at.Invalid(valid.Self, r, fmt.Sprintf("if '%s/*' is present, must not specify %s", name, r))
		}
		if whole.Has(sub) {
			at.Invalid(valid.Self, r, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, r))
		}
		if sub == all {
			every.Insert(name)
		}
		if name == all {
			whole.Insert(sub)
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		f.Invalid(valid.Self, resources, "if '*/*' is present, must not specify other resources")
	}
	// It is the last one without a subresource that counts.
	if slices.Contains(resources, all) && last != all {
		f.Invalid(valid.Self, resources, "if '*' is present, must not specify other resources without subresources")
	}
}

// checkMatch has the rules of what a policy is about.
func checkMatch(f *valid.Field, m *v1.MatchResources) {
	valid.Supported(f, "matchPolicy", kind.Value(m.MatchPolicy), v1.Equivalent, v1.Exact)
	f.Selector("namespaceSelector", m.NamespaceSelector)
	f.Selector("objectSelector", m.ObjectSelector)
	checkNamedRules(f, "resourceRules", m.ResourceRules)
	checkNamedRules(f, "excludeResourceRules", m.ExcludeResourceRules)
}

func checkNamedRules(in *valid.Field, name string, rules []v1.NamedRuleWithOperations) {
	f := in.Child(name)
	for i := range rules {
		at := f.Index(i)
		names, seen := at.Child("resourceNames"), sets.New[string]()
		for j, n := range rules[i].ResourceNames {
			one := names.Index(j)
			one.Problems(valid.Self, n, content.IsPathSegmentName(n))
			if seen.Has(n) {
				one.Duplicate(valid.Self, n)
			}
			seen.Insert(n)
		}
		checkRule(&at, &rules[i].RuleWithOperations)
	}
}

// conditions are further conditions of a match.
type conditions struct {
	list   []v1.MatchCondition
	params bool // there are parameters
	before sets.Set[string]
}

// expressionsOf are those of conditions.
func expressionsOf(list []v1.MatchCondition) sets.Set[string] {
	out := sets.New[string]()
	for _, c := range list {
		out.Insert(c.Expression)
	}
	return out
}

func (c *rules) checkConditions(in *valid.Field, m conditions) {
	const most = 64
	f := in.Child("matchConditions")
	if len(m.list) > most {
		f.TooMany(valid.Self, len(m.list), most)
	}
	names := sets.New[string]()
	for i, one := range m.list {
		at := f.Index(i)
		if text := strings.TrimSpace(one.Expression); at.NonEmpty("expression", text) {
			checkCompiled(&at, "expression", text, c.Plain().CompileCELExpression(
				expression.Returning(text, cel.BoolType),
				admissioncel.OptionalVariableDeclarations{HasParams: m.params, HasAuthorizer: true}, stored(m.before, text)))
		}
		if !at.NonEmpty("name", one.Name) {
			continue
		}
		at.Qualified("name", one.Name)
		if names.Has(one.Name) {
			at.Duplicate("name", one.Name)
		}
		names.Insert(one.Name)
	}
}
