// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func rbacKinds() []*apiserver.Resource {
	const group = rbacv1.GroupName
	bindingColumns := func() []metav1.TableColumnDefinition {
		return kind.Columns("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*")
	}
	return []*apiserver.Resource{
		kind.Of[rbacv1.Role, *rbacv1.Role]{
			Group: group, Version: "v1", Plural: "roles", Unconditional: true, Creates: true,
			Validate: func(r, old *rbacv1.Role) field.ErrorList {
				return append(validRBACName(r, old), validateRules(r.Rules, true, field.NewPath("rules"))...)
			},
			Columns: kind.Columns("Name", "Created At:date"),
			Row:     func(r *rbacv1.Role) []any { return kind.CreatedRow(r) },
		}.Resource(),
		kind.Of[rbacv1.ClusterRole, *rbacv1.ClusterRole]{
			Group: group, Version: "v1", Plural: "clusterroles", Cluster: true, Unconditional: true, Creates: true,
			Validate: validateClusterRole,
			Columns:  kind.Columns("Name", "Created At:date"),
			Row:      func(r *rbacv1.ClusterRole) []any { return kind.CreatedRow(r) },
		}.Resource(),
		kind.Of[rbacv1.RoleBinding, *rbacv1.RoleBinding]{
			Group: group, Version: "v1", Plural: "rolebindings", Unconditional: true, Creates: true,
			Defaults: func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
			Validate: func(b, old *rbacv1.RoleBinding) field.ErrorList {
				errs := append(validRBACName(b, old), validateBinding(b.RoleRef, b.Subjects, true)...)
				if old != nil && b.RoleRef != old.RoleRef {
					errs = append(errs, field.Invalid(field.NewPath("roleRef"), b.RoleRef, "cannot change roleRef"))
				}
				return errs
			},
			Columns: bindingColumns(),
			Row:     func(b *rbacv1.RoleBinding) []any { return bindingRow(b, b.RoleRef, b.Subjects) },
		}.Resource(),
		kind.Of[rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBinding]{
			Group: group, Version: "v1", Plural: "clusterrolebindings", Cluster: true, Unconditional: true, Creates: true,
			Defaults: func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
			Validate: func(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
				errs := append(validRBACName(b, old), validateBinding(b.RoleRef, b.Subjects, false)...)
				if old != nil && b.RoleRef != old.RoleRef {
					errs = append(errs, field.Invalid(field.NewPath("roleRef"), b.RoleRef, "cannot change roleRef"))
				}
				return errs
			},
			Columns: bindingColumns(),
			Row:     func(b *rbacv1.ClusterRoleBinding) []any { return bindingRow(b, b.RoleRef, b.Subjects) },
		}.Resource(),
	}
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

// validRBACName checks the names of roles and bindings, which may hold colons.
func validRBACName[P apiserver.Object](obj, old P) field.ErrorList {
	return valid.Name(obj, old, path.ValidatePathSegmentName) //nolint:staticcheck // deprecated for Kubernetes' own use; its messages are on the wire
}

func validateClusterRole(r, old *rbacv1.ClusterRole) field.ErrorList {
	return append(validRBACName(r, old), validateRules(r.Rules, false, field.NewPath("rules"))...)
}

func validateRules(rules []rbacv1.PolicyRule, namespaced bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range rules {
		p := at.Index(i)
		if len(r.Verbs) == 0 {
			errs = append(errs, field.Required(p.Child("verbs"), "verbs must contain at least one value"))
		}
		if len(r.NonResourceURLs) > 0 {
			if namespaced {
				errs = append(errs, field.Invalid(p.Child("nonResourceURLs"), r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(p.Child("nonResourceURLs"), r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			errs = append(errs, field.Required(p.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(r.Resources) == 0 {
			errs = append(errs, field.Required(p.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return errs
}

func validateBinding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, valid.OneOf(at.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName)...)
	}
	if namespaced {
		errs = append(errs, valid.OneOf(at.Child("kind"), ref.Kind, "Role", "ClusterRole")...)
	} else {
		errs = append(errs, valid.OneOf(at.Child("kind"), ref.Kind, "ClusterRole")...)
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	for i, s := range subjects {
		p := field.NewPath("subjects").Index(i)
		if s.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		}
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			if s.APIGroup != "" {
				errs = append(errs, field.NotSupported(p.Child("apiGroup"), s.APIGroup, []string{""}))
			}
			if !namespaced && s.Namespace == "" {
				errs = append(errs, field.Required(p.Child("namespace"), ""))
			}
		case rbacv1.UserKind, rbacv1.GroupKind:
			if s.APIGroup != rbacv1.GroupName {
				errs = append(errs, field.NotSupported(p.Child("apiGroup"), s.APIGroup, []string{rbacv1.GroupName}))
			}
		default:
			errs = append(errs, field.NotSupported(p.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
		}
	}
	return errs
}
