// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/internal/derived"
	"github.com/steer-dev/steer/storage"
)

// Authorizer allows what the roles and bindings in a store allow. It never
// denies: what no rule allows is left to others. It is safe for concurrent use
// and holds on to no view of the store.
type Authorizer struct {
	store storage.Viewer
	index *derived.Value[*index]
}

var (
	_ auth.Authorizer = (*Authorizer)(nil)
	_ auth.RuleLister = (*Authorizer)(nil)
)

// New returns an authorizer over a store. Nothing is read before it is asked.
func New(store storage.Viewer) *Authorizer {
	compute := func(view storage.View, before *index) (*index, error) { return newIndex(view, before), nil }
	return &Authorizer{store, derived.New(store, compute, clusterRoleBindings, clusterRoles, roleBindings, roles)}
}

// Authorize implements [auth.Authorizer]. The reason of an answer that allows
// names binding, role and subject. Bindings of roles that do not exist are named
// in the reason of a refusal.
func (z *Authorizer) Authorize(ctx context.Context, a *auth.Attributes) (auth.Decision, string, error) {
	var allowed *binding
	var failed []error
	err := z.visit(a.User, a.Namespace, func(b *binding, rules []rbacv1.PolicyRule, err error) bool {
		if err != nil {
			failed = append(failed, err)
			return true
		}
		for i := range rules {
			if allows(&rules[i], a) {
				allowed = b
				return false
			}
		}
		return true
	})
	switch {
	case err != nil:
		return auth.NoOpinion, "", err
	case allowed != nil:
		return auth.Allow, allowed.reason(a.User), nil
	case len(failed) > 0:
		return auth.NoOpinion, fmt.Sprintf("rbac: RBAC: %v", utilerrors.NewAggregate(failed)), nil
	}
	return auth.NoOpinion, "", nil
}

// visit calls yield for every binding that gives something to a user in a
// namespace, those of the cluster first, until it returns false. Instead of the
// rules it gets the error of a role that cannot be found.
func (z *Authorizer) visit(user *auth.User, namespace string, yield func(*binding, []rbacv1.PolicyRule, error) bool) error {
	if user == nil {
		return nil
	}
	ix, err := z.index.Get()
	if err != nil {
		return fmt.Errorf("read roles and bindings: %w", err)
	}
	var buffer [16]grant
	for _, g := range ix.cluster.of(user, buffer[:0]) {
		if !g.visit(yield) {
			return nil
		}
	}
	if namespace == "" {
		return nil
	}
	local := ix.in(z.store, namespace)
	for _, g := range local.of(user, buffer[:0]) {
		if !g.visit(yield) {
			return nil
		}
	}
	return nil
}

func (g *grant) visit(yield func(*binding, []rbacv1.PolicyRule, error) bool) bool {
	if g.role.err != nil {
		return yield(g.binding, nil, g.role.err)
	}
	return yield(g.binding, g.role.rules(), nil)
}

// rulesOf returns the rules that hold for a user in a namespace, or in all of
// them for an empty one, and the errors of bindings whose role cannot be found.
func (z *Authorizer) rulesOf(user *auth.User, namespace string) (rules []rbacv1.PolicyRule, failed []error) {
	err := z.visit(user, namespace, func(_ *binding, of []rbacv1.PolicyRule, err error) bool {
		if err != nil {
			failed = append(failed, err)
		}
		rules = append(rules, of...)
		return true
	})
	if err != nil {
		failed = append(failed, err)
	}
	return rules, failed
}

// Rules implements [auth.RuleLister].
func (z *Authorizer) Rules(ctx context.Context, user *auth.User, namespace string) (auth.Rules, error) {
	rules, failed := z.rulesOf(user, namespace)
	var out auth.Rules
	for i := range rules {
		r := &rules[i]
		if len(r.Resources) > 0 {
			out.Resource = append(out.Resource, authorizationv1.ResourceRule{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		}
		if len(r.NonResourceURLs) > 0 {
			out.NonResource = append(out.NonResource, authorizationv1.NonResourceRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
	return out, utilerrors.NewAggregate(failed)
}

// referred returns the rules of the role that a binding in a namespace refers
// to; known is false when there is no such role.
func (z *Authorizer) referred(ref rbacv1.RoleRef, namespace string) (rules []rbacv1.PolicyRule, known bool) {
	key := storage.Key{Bucket: clusterRoles, Name: ref.Name}
	if ref.Kind == "Role" {
		key = storage.Key{Bucket: roles, Name: namespace + "/" + ref.Name}
	}
	rec := z.store.Get(key)
	if rec == nil {
		return nil, false
	}
	return readRules(rec), true
}
