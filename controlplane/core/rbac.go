// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

func rbacKinds() []*resource.Resource {
	const group = rbacv1.GroupName
	bindingColumns := func() []metav1.TableColumnDefinition {
		return kind.Columns("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*")
	}
	kinds := []*resource.Resource{
		kind.Definition[rbacv1.Role, *rbacv1.Role]{
			Group: group, Version: "v1", Plural: "roles", Unconditional: true, Creates: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Validate: func(r, _ *rbacv1.Role) field.ErrorList {
				return validateRules(r.Rules, true, field.NewPath("rules"))
			},
			Columns: kind.Columns("Name", "Created At:date"),
			Row:     func(r *rbacv1.Role) []any { return kind.CreatedRow(r) },
		}.Resource(),
		kind.Definition[rbacv1.ClusterRole, *rbacv1.ClusterRole]{
			Group: group, Version: "v1", Plural: "clusterroles", Cluster: true, Unconditional: true, Creates: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Validate: validateClusterRole,
			Columns:  kind.Columns("Name", "Created At:date"),
			Row:      func(r *rbacv1.ClusterRole) []any { return kind.CreatedRow(r) },
		}.Resource(),
		kind.Definition[rbacv1.RoleBinding, *rbacv1.RoleBinding]{
			Group: group, Version: "v1", Plural: "rolebindings", Unconditional: true, Creates: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Defaults: func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
			Validate: func(b, old *rbacv1.RoleBinding) field.ErrorList {
				errs := validateBinding(b.RoleRef, b.Subjects, true)
				if old == nil {
					return errs
				}
				return append(errs, sameRole(b.RoleRef, old.RoleRef)...)
			},
			Columns: bindingColumns(),
			Row:     func(b *rbacv1.RoleBinding) []any { return bindingRow(b, b.RoleRef, b.Subjects) },
		}.Resource(),
		kind.Definition[rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBinding]{
			Group: group, Version: "v1", Plural: "clusterrolebindings", Cluster: true, Unconditional: true, Creates: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Defaults: func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
			Validate: func(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
				errs := validateBinding(b.RoleRef, b.Subjects, false)
				if old == nil {
					return errs
				}
				return append(errs, sameRole(b.RoleRef, old.RoleRef)...)
			},
			Columns: bindingColumns(),
			Row:     func(b *rbacv1.ClusterRoleBinding) []any { return bindingRow(b, b.RoleRef, b.Subjects) },
		}.Resource(),
	}
	for _, k := range kinds { // names may hold colons and capitals
		k.NameRule = kind.PathSegment
	}
	return kinds
}

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	kind.OrDefault(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if k := subjects[i].Kind; k == rbacv1.UserKind || k == rbacv1.GroupKind {
			kind.OrDefault(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

func bindingRow(obj metav1.Object, ref rbacv1.RoleRef, subjects []rbacv1.Subject) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{
		obj.GetName(), ref.Kind + "/" + ref.Name, kind.Age(obj),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}
