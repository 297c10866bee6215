// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestRulesOfNodeSelectors(t *testing.T) {
	t.Parallel()
	selector := func(values bool, terms ...corev1.NodeSelectorTerm) func(f *Field) {
		return func(f *Field) { f.NodeSelector(&corev1.NodeSelector{NodeSelectorTerms: terms}, values) }
	}
	expression := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	fields := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	const terms, one = "spec.nodeSelectorTerms", "spec.nodeSelectorTerms[0].matchExpressions[0]"
	runRules(t, []rule{
		{"no terms", selector(false), terms + ": Required value: must have at least one node selector term"},
		{"empty term", selector(false, corev1.NodeSelectorTerm{}), ""},
		{"In", selector(true, expression("a", "In", "b", "c")), ""},
		{"In without values", selector(true, expression("a", "In")), one + ".values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
		{"NotIn without values", selector(true, expression("a", "NotIn")), one + ".values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
		{"Exists", selector(true, expression("a", "Exists")), ""},
		{"Exists with a value", selector(true, expression("a", "Exists", "b")), one + ".values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
		{"DoesNotExist with a value", selector(true, expression("a", "DoesNotExist", "b")), one + ".values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
		{"Gt", selector(true, expression("a", "Gt", "1")), ""},
		{"Gt without a value", selector(true, expression("a", "Gt")), one + ".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"},
		{"Lt with two values", selector(true, expression("a", "Lt", "1", "2")), one + ".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"},
		{"operator that is unknown", selector(true, expression("a", "Like", "1")), one + `.operator: Invalid value: "Like": not a valid selector operator`},
		{"key that is invalid", selector(true, expression("-", "Exists")), one + `.key: Invalid value: "-": name part must consist of...`},
		{"value that is invalid", selector(true, expression("a", "In", "b", "-")), one + `.values[1]: Invalid value: "-": a valid label must be an empty string or consist of...`},
		{"value that is invalid and not checked", selector(false, expression("a", "In", "-")), ""},
		{"second term", selector(true, corev1.NodeSelectorTerm{}, expression("-", "Exists")), terms + `[1].matchExpressions[0].key: Invalid value: "-": name part...`},
		{"field", selector(false, fields("metadata.name", "In", "node-1")), ""},
		{"field that is unknown", selector(false, fields("spec.x", "NotIn", "node-1")), terms + `[0].matchFields[0].key: Invalid value: "spec.x": not a valid field selector key`},
		{"field with two values", selector(false, fields("metadata.name", "In", "a", "b")), terms + "[0].matchFields[0].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"},
		{"field that exists", selector(false, fields("metadata.name", "Exists")), terms + `[0].matchFields[0].operator: Invalid value: "Exists": not a valid selector operator`},
		{"field with an invalid name", selector(false, fields("metadata.name", "In", "A")), terms + `[0].matchFields[0].values[0]: Invalid value: "A": a lowercase RFC 1123 subdomain...`},
	})
}

func TestRulesOfTolerations(t *testing.T) {
	t.Parallel()
	seconds := int64(1)
	tolerations := func(list ...corev1.Toleration) func(f *Field) {
		return func(f *Field) { f.Tolerations(list) }
	}
	runRules(t, []rule{
		{"none", tolerations(), ""},
		{"equal", tolerations(corev1.Toleration{Key: "a", Operator: "Equal", Value: "b", Effect: "NoSchedule"}, corev1.Toleration{Key: "a", Value: "b"}), ""},
		{"everything", tolerations(corev1.Toleration{Operator: "Exists"}), ""},
		{"a key that is invalid", tolerations(corev1.Toleration{Key: "-", Operator: "Exists"}), `spec[0].key: Invalid value: "-": name part...`},
		{"no key", tolerations(corev1.Toleration{Operator: "Equal"}), `spec[0].operator: Invalid value: "Equal": operator must be Exists when ` + "`key`" + ` is empty, which means "match all values and all keys"`},
		{"a time", tolerations(corev1.Toleration{Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds}), ""},
		{"a time without eviction", tolerations(corev1.Toleration{Operator: "Exists", Effect: "NoSchedule", TolerationSeconds: &seconds}),
			`spec[0].effect: Invalid value: "NoSchedule": effect must be 'NoExecute' when ` + "`tolerationSeconds`" + ` is set`},
		{"a value that is invalid", tolerations(corev1.Toleration{Key: "a", Operator: "Equal", Value: "-"}), `spec[0].operator: Invalid value: "-": a valid label must be...`},
		{"a value that exists", tolerations(corev1.Toleration{Key: "a", Operator: "Exists", Value: "b"}), `spec[0].operator: Invalid value: "b": value must be empty when ` + "`operator`" + ` is 'Exists'`},
		{"an operator behind a gate", tolerations(corev1.Toleration{Key: "a", Operator: "Gt", Value: "1"}), `spec[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"`},
		{"an operator that is unknown", tolerations(corev1.Toleration{Key: "a", Operator: "Like"}), `spec[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"`},
		{"an effect that is unknown", tolerations(corev1.Toleration{Operator: "Exists"}, corev1.Toleration{Operator: "Exists", Effect: "Moon"}),
			`spec[1].effect: Unsupported value: "Moon": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`},
	})
}
