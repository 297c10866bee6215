// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package userroles makes the ClusterRoles for people who use the kinds of a project: admin,
// editor and viewer of each, with the names and rules that kubebuilder gives them. Nothing
// binds them. It is a small package because steer package, steer dev and steertest share it.
package userroles

import "strings"

// Of returns the roles of the kind that a CustomResourceDefinition has, as manifests without
// labels. perGroup puts the group in front of the kind, as in projects with several groups.
func Of(project string, perGroup bool, definition map[string]any) (roles []map[string]any) {
	spec, _ := definition["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	plural, _ := names["plural"].(string)
	group, _ := spec["group"].(string)
	name := strings.ToLower(kind)
	if first, _, _ := strings.Cut(group, "."); perGroup && first != "" {
		name = first + "-" + name
	}
	for _, role := range []struct {
		who   string
		verbs []any
	}{
		{"admin", []any{"*"}},
		{"editor", []any{"create", "delete", "get", "list", "patch", "update", "watch"}},
		{"viewer", []any{"get", "list", "watch"}},
	} {
		roles = append(roles, map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": map[string]any{"name": project + "-" + name + "-" + role.who + "-role"},
			"rules": []any{
				map[string]any{"apiGroups": []any{group}, "resources": []any{plural}, "verbs": role.verbs},
				map[string]any{"apiGroups": []any{group}, "resources": []any{plural + "/status"}, "verbs": []any{"get"}},
			},
		})
	}
	return roles
}
