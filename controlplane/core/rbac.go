// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
)

func rbacKinds() []*apiserver.Resource {
	const group = rbacv1.GroupName
	bindingColumns := func() []metav1.TableColumnDefinition {
		return columns("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*")
	}
	return []*apiserver.Resource{
		kind[rbacv1.Role, *rbacv1.Role]{
			group: group, version: "v1", plural: "roles", unconditional: true, creates: true,
			validate: func(r, old *rbacv1.Role) field.ErrorList {
				return append(validRBACName(r, old), validateRules(r.Rules, true, field.NewPath("rules"))...)
			},
			columns: columns("Name", "Created At:date"),
			row:     func(r *rbacv1.Role) []any { return createdRow(r) },
		}.resource(),
		kind[rbacv1.ClusterRole, *rbacv1.ClusterRole]{
			group: group, version: "v1", plural: "clusterroles", cluster: true, unconditional: true, creates: true,
			validate: validateClusterRole,
			columns:  columns("Name", "Created At:date"),
			row:      func(r *rbacv1.ClusterRole) []any { return createdRow(r) },
		}.resource(),
		kind[rbacv1.RoleBinding, *rbacv1.RoleBinding]{
			group: group, version: "v1", plural: "rolebindings", unconditional: true, creates: true,
			defaults: func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
			validate: func(b, old *rbacv1.RoleBinding) field.ErrorList {
				errs := append(validRBACName(b, old), validateBinding(b.RoleRef, b.Subjects, true)...)
				if old != nil && b.RoleRef != old.RoleRef {
					errs = append(errs, field.Invalid(field.NewPath("roleRef"), b.RoleRef, "cannot change roleRef"))
				}
				return errs
			},
			columns: bindingColumns(),
			row:     func(b *rbacv1.RoleBinding) []any { return bindingRow(b, b.RoleRef, b.Subjects) },
		}.resource(),
		kind[rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBinding]{
			group: group, version: "v1", plural: "clusterrolebindings", cluster: true, unconditional: true, creates: true,
			defaults: func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
			validate: func(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
				errs := append(validRBACName(b, old), validateBinding(b.RoleRef, b.Subjects, false)...)
				if old != nil && b.RoleRef != old.RoleRef {
					errs = append(errs, field.Invalid(field.NewPath("roleRef"), b.RoleRef, "cannot change roleRef"))
				}
				return errs
			},
			columns: bindingColumns(),
			row:     func(b *rbacv1.ClusterRoleBinding) []any { return bindingRow(b, b.RoleRef, b.Subjects) },
		}.resource(),
	}
}

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	orDefault(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if k := subjects[i].Kind; k == rbacv1.UserKind || k == rbacv1.GroupKind {
			orDefault(&subjects[i].APIGroup, rbacv1.GroupName)
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
		obj.GetName(), ref.Kind + "/" + ref.Name, age(obj),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}
