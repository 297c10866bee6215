// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/steer-dev/steer/apiserver/auth"
)

// everything stands for every verb, group, resource, or path in a rule.
const everything = "*"

// allows reports whether a rule covers a request.
func allows(rule *rbacv1.PolicyRule, a *auth.Attributes) bool {
	if !has(rule.Verbs, a.Verb) {
		return false
	}
	if !a.ResourceRequest {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return auth.MatchesPath(pattern, a.Path) })
	}
	return has(rule.APIGroups, a.Group) && matchesResource(rule.Resources, a.Resource, a.Subresource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

// has reports whether a list of a rule names a value, or all.
func has(list []string, value string) bool {
	for _, s := range list {
		if s == everything || s == value {
			return true
		}
	}
	return false
}

// matchesResource reports whether one of the resources of a rule is the one that
// is asked for: by name, with "*/scale" for that subresource of everything.
func matchesResource(list []string, resource, subresource string) bool {
	for _, s := range list {
		if s == everything {
			return true
		}
		if subresource == "" {
			if s == resource {
				return true
			}
			continue
		}
		before, ok := strings.CutSuffix(s, subresource)
		if ok && (before == "*/" || len(before) == len(resource)+1 && before[len(resource)] == '/' && before[:len(resource)] == resource) {
			return true
		}
	}
	return false
}

// coversResource reports whether one of the resources of a rule includes another,
// which may itself stand for many.
func coversResource(list []string, resource string) bool {
	if has(list, resource) {
		return true
	}
	_, subresource, nested := strings.Cut(resource, "/")
	return nested && slices.Contains(list, "*/"+subresource)
}

// missing returns the parts of wanted, each about one verb of one thing, that
// held does not cover.
func missing(held, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for i := range wanted {
		for _, part := range parts(&wanted[i]) {
			if !slices.ContainsFunc(held, func(rule rbacv1.PolicyRule) bool { return covers(&rule, &part) }) {
				out = append(out, part)
			}
		}
	}
	return out
}

// parts splits a rule into rules about one verb of one thing.
func parts(rule *rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				part := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
				if len(rule.ResourceNames) == 0 {
					out = append(out, part)
				}
				for _, name := range rule.ResourceNames {
					part.ResourceNames = []string{name}
					out = append(out, part)
				}
			}
		}
	}
	for _, path := range rule.NonResourceURLs {
		for _, verb := range rule.Verbs {
			out = append(out, rbacv1.PolicyRule{NonResourceURLs: []string{path}, Verbs: []string{verb}})
		}
	}
	return out
}

// covers reports whether a rule includes a part of another.
func covers(rule, part *rbacv1.PolicyRule) bool {
	if !has(rule.Verbs, part.Verbs[0]) {
		return false
	}
	if len(part.NonResourceURLs) > 0 {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return auth.MatchesPath(pattern, part.NonResourceURLs[0]) })
	}
	if !has(rule.APIGroups, part.APIGroups[0]) || !coversResource(rule.Resources, part.Resources[0]) {
		return false
	}
	switch {
	case len(rule.ResourceNames) == 0:
		return true
	case len(part.ResourceNames) == 0:
		return false
	}
	return slices.Contains(rule.ResourceNames, part.ResourceNames[0])
}
