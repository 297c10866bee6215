// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
)

// Escalation is the admission that refuses roles and bindings by which a user
// would hand out more than they have. Who may escalate the role or bind it, and
// members of system:masters, may all the same. It goes last among the
// admissions that change objects.
type Escalation struct {
	resource.MutatesOnly
	// Roles that are in force.
	Roles *Authorizer
	// Authorizer of the server, which is asked for the verbs escalate and bind.
	Authorizer auth.Authorizer
}

var _ resource.Admission = Escalation{}

// errAggregation refuses rules that are aggregated by label.
var errAggregation = errors.New("must have cluster-admin privileges to use the aggregationRule")

// Admit implements [resource.Admission].
func (e Escalation) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	if r.Object == nil || r.User.In(auth.Masters) || admission.OnlyCollected(r) {
		return nil
	}
	switch obj := r.Object.(type) {
	case *rbacv1.Role:
		return e.role(ctx, r, obj.Rules, false)
	case *rbacv1.ClusterRole:
		old, _ := r.Old.(*rbacv1.ClusterRole)
		return e.role(ctx, r, obj.Rules, aggregates(obj) || old != nil && aggregates(old))
	case *rbacv1.RoleBinding:
		return e.binding(ctx, r, obj.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		return e.binding(ctx, r, obj.RoleRef)
	}
	return nil
}

// Mutates implements [resource.Mutator]: objects stay as they are.
func (e Escalation) Mutates(*resource.AdmissionRequest) bool { return false }

func aggregates(r *rbacv1.ClusterRole) bool {
	return r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

// role refuses rules beyond those of the user.
func (e Escalation) role(ctx context.Context, r *resource.AdmissionRequest, rules []rbacv1.PolicyRule, aggregated bool) error {
	name := r.Name
	if r.Verb == "create" {
		name = "" // as at the authorization of the request
	}
	if e.may(ctx, &auth.Attributes{
		User: r.User, Verb: "escalate", ResourceRequest: true, Group: rbacv1.GroupName, Version: "*",
		Resource: r.Resource.Plural, Namespace: r.Namespace, Name: name,
	}) {
		return nil
	}
	if err := e.holds(r, rules); err != nil {
		return e.refuse(r, err)
	}
	if !aggregated {
		return nil
	}
	all := []string{everything}
	if e.holds(r, []rbacv1.PolicyRule{{Verbs: all, APIGroups: all, Resources: all}, {Verbs: all, NonResourceURLs: all}}) != nil {
		return e.refuse(r, errAggregation)
	}
	return nil
}

// binding refuses to bind a role with more rules than those of the user.
func (e Escalation) binding(ctx context.Context, r *resource.AdmissionRequest, ref rbacv1.RoleRef) error {
	var plural string
	switch ref.Kind {
	case "ClusterRole":
		plural = "clusterroles"
	case "Role":
		plural = "roles"
	default:
		return fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
	}
	if e.may(ctx, &auth.Attributes{
		User: r.User, Verb: "bind", ResourceRequest: true, Group: ref.APIGroup, Version: "*",
		Resource: plural, Namespace: r.Namespace, Name: ref.Name,
	}) {
		return nil
	}
	rules, known := e.Roles.referred(ref, r.Namespace)
	if !known {
		return apierrors.NewNotFound(r.Resource.GroupResource(), ref.Name) // in these words
	}
	if err := e.holds(r, rules); err != nil {
		return e.refuse(r, err)
	}
	return nil
}

// may reports whether the user is expressly allowed to do what is refused else.
func (e Escalation) may(ctx context.Context, a *auth.Attributes) bool {
	return auth.Check(ctx, e.Authorizer, a) == nil
}

// holds returns an error that lists what of the rules the user does not have.
func (e Escalation) holds(r *resource.AdmissionRequest, rules []rbacv1.PolicyRule) error {
	held, failed := e.Roles.rulesOf(r.User, r.Namespace)
	lacking := missing(held, rules)
	if len(lacking) == 0 {
		return nil
	}
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", r.User.Name, r.User.Groups, describe(lacking))
	for i, err := range failed { // here the names are those of resources
		if absent, ok := errors.AsType[absentError](err); ok {
			failed[i] = notFound(absent.resource+"s", absent.name)
		}
	}
	if len(failed) > 0 {
		text += fmt.Sprintf("; resolution errors: [%v]", utilerrors.NewAggregate(failed))
	}
	return errors.New(text)
}

func (e Escalation) refuse(r *resource.AdmissionRequest, err error) error {
	return apierrors.NewForbidden(r.Resource.GroupResource(), r.Object.GetName(), err)
}
