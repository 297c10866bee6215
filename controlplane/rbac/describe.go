// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// describe returns rules as refusals list them: one line each, in order, with
// the verbs of one resource together.
func describe(rules []rbacv1.PolicyRule) string {
	var lines []string
	for _, rule := range compact(rules) {
		lines = append(lines, line(&rule))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// compact joins rules that differ in nothing but their verbs. The rules are
// parts, so each is about one thing.
func compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type thing struct {
		group, resource, name string
		named                 bool
	}
	var out []rbacv1.PolicyRule
	at := map[thing]int{}
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			out = append(out, rule)
			continue
		}
		t := thing{group: rule.APIGroups[0], resource: rule.Resources[0]}
		if len(rule.ResourceNames) > 0 {
			t.name, t.named = rule.ResourceNames[0], true
		}
		if i, known := at[t]; known {
			out[i].Verbs = append(out[i].Verbs[:len(out[i].Verbs):len(out[i].Verbs)], rule.Verbs...)
			continue
		}
		at[t] = len(out)
		out = append(out, rule)
	}
	return out
}

// line is one rule without the fields that it does not use.
func line(rule *rbacv1.PolicyRule) string {
	var fields []string
	for _, f := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", rule.APIGroups}, {"Resources", rule.Resources}, {"NonResourceURLs", rule.NonResourceURLs},
		{"ResourceNames", rule.ResourceNames}, {"Verbs", rule.Verbs},
	} {
		if len(f.values) > 0 {
			fields = append(fields, fmt.Sprintf("%s:%q", f.name, f.values))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
