// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admissionregistration serves the kinds by which others extend the API server: webhook
// configurations, and admission policies with their bindings.
package admissionregistration

import (
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// NotEnforced is what a write to a kind is answered with whose objects are
// stored and have no effect yet.
func NotEnforced(kind string) string {
	return kind + " objects are stored, but this server does not enforce them yet"
}

// staticNames are the warnings about the name of a configuration.
func staticNames(name string) []string {
	const static = ".static.k8s.io"
	if !strings.HasSuffix(name, static) {
		return nil
	}
	return []string{"metadata.name: names ending with \"" + static + "\" are reserved for static manifest-based configurations and cannot be managed via the API"}
}

// Resources returns the kinds of this package.
func Resources() []*resource.Resource {
	const group = v1.GroupName
	extensions := []string{"api-extensions"}
	compile := new(rules)
	type (
		mutating   = *v1.MutatingWebhookConfiguration
		validating = *v1.ValidatingWebhookConfiguration
		policy     = *v1.ValidatingAdmissionPolicy
		binding    = *v1.ValidatingAdmissionPolicyBinding
	)
	return []*resource.Resource{
		kind.Definition[v1.MutatingWebhookConfiguration, mutating]{
			Group: group, Version: "v1", Plural: "mutatingwebhookconfigurations", Cluster: true, Categories: extensions, Generations: true,
			Metadata: kind.Metadata{AnyFinalizer: true},
			Defaults: func(c mutating) {
				for i := range c.Webhooks {
					w := &c.Webhooks[i]
					kind.Fill(&w.ReinvocationPolicy, v1.NeverReinvocationPolicy)
					defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
				}
			},
			Validate: compile.validateMutating,
			Warnings: func(o, _ mutating) []string { return staticNames(o.Name) },
			Columns:  kind.Columns("Name", "Webhooks:integer", "Age"),
			Row:      func(c mutating) []any { return []any{c.Name, kind.Count(c.Webhooks), kind.Age(c)} },
		}.Resource(),
		kind.Definition[v1.ValidatingWebhookConfiguration, validating]{
			Group: group, Version: "v1", Plural: "validatingwebhookconfigurations", Cluster: true, Categories: extensions, Generations: true,
			Metadata: kind.Metadata{AnyFinalizer: true},
			Defaults: func(c validating) {
				for i := range c.Webhooks {
					w := &c.Webhooks[i]
					defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
				}
			},
			Validate: compile.validateValidating,
			Warnings: func(o, _ validating) []string { return staticNames(o.Name) },
			Columns:  kind.Columns("Name", "Webhooks:integer", "Age"),
			Row:      func(c validating) []any { return []any{c.Name, kind.Count(c.Webhooks), kind.Age(c)} },
		}.Resource(),
		kind.Definition[v1.ValidatingAdmissionPolicy, policy]{
			Group: group, Version: "v1", Plural: "validatingadmissionpolicies", Cluster: true, Categories: extensions, Generations: true, Status: true,
			Metadata: kind.Metadata{AnyFinalizer: true, KeepMetadataInStatus: true},
			Defaults: func(p policy) {
				kind.Fill(&p.Spec.FailurePolicy, v1.Fail)
				if p.Spec.MatchConstraints != nil {
					defaultMatch(p.Spec.MatchConstraints)
				}
			},
			Validate:       compile.validatePolicy,
			ValidateStatus: validatePolicyStatus,
			Warnings:       func(o, _ policy) []string { return staticNames(o.Name) },
			Columns:        kind.Columns("Name", "Validations:integer", "ParamKind", "Age"),
			Row: func(p policy) []any {
				param := "<unset>"
				if k := p.Spec.ParamKind; k != nil {
					param = k.APIVersion + "/" + k.Kind
				}
				return []any{p.Name, kind.Count(p.Spec.Validations), param, kind.Age(p)}
			},
		}.Resource(),
		compile.mutatingPolicies().Resource(),
		mutatingBindings().Resource(),
		kind.Definition[v1.ValidatingAdmissionPolicyBinding, binding]{
			Group: group, Version: "v1", Plural: "validatingadmissionpolicybindings", Cluster: true, Categories: extensions, Generations: true,
			Metadata: kind.Metadata{AnyFinalizer: true},
			Defaults: func(b binding) {
				if b.Spec.MatchResources != nil {
					defaultMatch(b.Spec.MatchResources)
				}
			},
			Validate: validateBinding,
			Warnings: func(o, _ binding) []string { return staticNames(o.Name) },
			Columns:  kind.Columns("Name", "PolicyName", "ParamRef", "Age"),
			Row: func(b binding) []any {
				return []any{b.Name, b.Spec.PolicyName, paramText(b.Spec.ParamRef), kind.Age(b)}
			},
		}.Resource(),
	}
}

func defaultWebhook(failure **v1.FailurePolicyType, match **v1.MatchPolicyType, namespaces, objects **metav1.LabelSelector,
	timeout **int32, client *v1.WebhookClientConfig, rules []v1.RuleWithOperations) {
	kind.Fill(failure, v1.Fail)
	kind.Fill(match, v1.Equivalent)
	kind.Fill(namespaces, metav1.LabelSelector{})
	kind.Fill(objects, metav1.LabelSelector{})
	kind.Fill(timeout, int32(10))
	if client.Service != nil {
		kind.Fill(&client.Service.Port, int32(443))
	}
	for i := range rules {
		kind.Fill(&rules[i].Scope, v1.AllScopes)
	}
}

func defaultMatch(m *v1.MatchResources) {
	kind.Fill(&m.MatchPolicy, v1.Equivalent)
	kind.Fill(&m.NamespaceSelector, metav1.LabelSelector{})
	kind.Fill(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]v1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			kind.Fill(&rules[i].Scope, v1.AllScopes)
		}
	}
}

func paramText(r *v1.ParamRef) string {
	if r == nil {
		return "<unset>"
	}
	if r.Name != "" {
		namespace := "*"
		if r.Namespace != "" {
			namespace = r.Namespace
		}
		return namespace + "/" + r.Name
	}
	return kind.SelectorText(r.Selector)
}

type (
	mutatingPolicy  = *v1.MutatingAdmissionPolicy
	mutatingBinding = *v1.MutatingAdmissionPolicyBinding
)

// mutatingPolicies describes MutatingAdmissionPolicies.
func (c *rules) mutatingPolicies() kind.Definition[v1.MutatingAdmissionPolicy, mutatingPolicy] {
	return kind.Definition[v1.MutatingAdmissionPolicy, mutatingPolicy]{
		Group: v1.GroupName, Version: "v1", Plural: "mutatingadmissionpolicies", Cluster: true, Categories: []string{"api-extensions"}, Generations: true,
		Metadata: kind.Metadata{AnyFinalizer: true},
		Defaults: func(p mutatingPolicy) {
			kind.Fill(&p.Spec.FailurePolicy, v1.Fail)
			if p.Spec.MatchConstraints != nil {
				defaultMatch(p.Spec.MatchConstraints)
			}
		},
		Validate: c.validateMutatingPolicy,
		Warnings: func(o, _ mutatingPolicy) []string { return staticNames(o.Name) },
		Columns:  kind.Columns("Name", "Mutations:integer", "ParamKind", "Age"),
		Row: func(p mutatingPolicy) []any {
			param := "<unset>"
			if k := p.Spec.ParamKind; k != nil {
				param = k.APIVersion + "/" + k.Kind
			}
			return []any{p.Name, kind.Count(p.Spec.Mutations), param, kind.Age(p)}
		},
	}
}

// mutatingBindings describes the bindings of MutatingAdmissionPolicies.
func mutatingBindings() kind.Definition[v1.MutatingAdmissionPolicyBinding, mutatingBinding] {
	return kind.Definition[v1.MutatingAdmissionPolicyBinding, mutatingBinding]{
		Group: v1.GroupName, Version: "v1", Plural: "mutatingadmissionpolicybindings", Cluster: true, Categories: []string{"api-extensions"}, Generations: true,
		Metadata: kind.Metadata{AnyFinalizer: true},
		Defaults: func(b mutatingBinding) {
			if b.Spec.MatchResources != nil {
				defaultMatch(b.Spec.MatchResources)
			}
		},
		Validate: validateMutatingBinding,
		Warnings: func(o, _ mutatingBinding) []string { return staticNames(o.Name) },
		Columns:  kind.Columns("Name", "PolicyName", "ParamRef", "Age"),
		Row: func(b mutatingBinding) []any {
			return []any{b.Name, b.Spec.PolicyName, paramText(b.Spec.ParamRef), kind.Age(b)}
		},
	}
}
