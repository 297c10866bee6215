// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver"
)

// notEnforced is what a write to a kind is answered with whose objects are
// stored and have no effect yet.
func notEnforced(kind string) string {
	return kind + " objects are stored, but this server does not enforce them yet"
}

func admissionKinds() []*apiserver.Resource {
	const group = v1.GroupName
	extensions := []string{"api-extensions"}
	type (
		mutating   = *v1.MutatingWebhookConfiguration
		validating = *v1.ValidatingWebhookConfiguration
		policy     = *v1.ValidatingAdmissionPolicy
		binding    = *v1.ValidatingAdmissionPolicyBinding
	)
	return []*apiserver.Resource{
		kind[v1.MutatingWebhookConfiguration, mutating]{
			group: group, version: "v1", plural: "mutatingwebhookconfigurations", cluster: true, categories: extensions, generations: true,
			defaults: func(c mutating) {
				for i := range c.Webhooks {
					w := &c.Webhooks[i]
					fill(&w.ReinvocationPolicy, v1.NeverReinvocationPolicy)
					defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
				}
			},
			warnings: func(_, _ mutating) []string { return []string{notEnforced("MutatingWebhookConfiguration")} },
			columns:  columns("Name", "Webhooks:integer", "Age"),
			row:      func(c mutating) []any { return []any{c.Name, count(c.Webhooks), age(c)} },
		}.resource(),
		kind[v1.ValidatingWebhookConfiguration, validating]{
			group: group, version: "v1", plural: "validatingwebhookconfigurations", cluster: true, categories: extensions, generations: true,
			defaults: func(c validating) {
				for i := range c.Webhooks {
					w := &c.Webhooks[i]
					defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
				}
			},
			warnings: func(_, _ validating) []string { return []string{notEnforced("ValidatingWebhookConfiguration")} },
			columns:  columns("Name", "Webhooks:integer", "Age"),
			row:      func(c validating) []any { return []any{c.Name, count(c.Webhooks), age(c)} },
		}.resource(),
		kind[v1.ValidatingAdmissionPolicy, policy]{
			group: group, version: "v1", plural: "validatingadmissionpolicies", cluster: true, categories: extensions, generations: true, status: true,
			defaults: func(p policy) {
				fill(&p.Spec.FailurePolicy, v1.Fail)
				if p.Spec.MatchConstraints != nil {
					defaultMatch(p.Spec.MatchConstraints)
				}
			},
			warnings: func(_, _ policy) []string { return []string{notEnforced("ValidatingAdmissionPolicy")} },
			columns:  columns("Name", "Validations:integer", "ParamKind", "Age"),
			row: func(p policy) []any {
				param := "<unset>"
				if k := p.Spec.ParamKind; k != nil {
					param = k.APIVersion + "/" + k.Kind
				}
				return []any{p.Name, count(p.Spec.Validations), param, age(p)}
			},
		}.resource(),
		kind[v1.ValidatingAdmissionPolicyBinding, binding]{
			group: group, version: "v1", plural: "validatingadmissionpolicybindings", cluster: true, categories: extensions, generations: true,
			defaults: func(b binding) {
				if b.Spec.MatchResources != nil {
					defaultMatch(b.Spec.MatchResources)
				}
			},
			warnings: func(_, _ binding) []string { return []string{notEnforced("ValidatingAdmissionPolicyBinding")} },
			columns:  columns("Name", "PolicyName", "ParamRef", "Age"),
			row:      func(b binding) []any { return []any{b.Name, b.Spec.PolicyName, paramText(b.Spec.ParamRef), age(b)} },
		}.resource(),
	}
}

func defaultWebhook(failure **v1.FailurePolicyType, match **v1.MatchPolicyType, namespaces, objects **metav1.LabelSelector,
	timeout **int32, client *v1.WebhookClientConfig, rules []v1.RuleWithOperations) {
	fill(failure, v1.Fail)
	fill(match, v1.Equivalent)
	fill(namespaces, metav1.LabelSelector{})
	fill(objects, metav1.LabelSelector{})
	fill(timeout, int32(10))
	if client.Service != nil {
		fill(&client.Service.Port, int32(443))
	}
	for i := range rules {
		fill(&rules[i].Scope, v1.AllScopes)
	}
}

func defaultMatch(m *v1.MatchResources) {
	fill(&m.MatchPolicy, v1.Equivalent)
	fill(&m.NamespaceSelector, metav1.LabelSelector{})
	fill(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]v1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			fill(&rules[i].Scope, v1.AllScopes)
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
	return selectorText(r.Selector)
}
