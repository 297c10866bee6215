// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Parameters refuses policies and bindings whose parameters their author may not
// read: what a policy answers would tell. Members of system:masters may read
// everything.
type Parameters struct {
	// Authorizer of the server.
	Authorizer auth.Authorizer
	// Store that policies are kept in.
	Store storage.Store
	// Catalog of what the server serves.
	Catalog step.Catalog
}

// Component adds the check to policies and their bindings.
func (p Parameters) Component() component.Component {
	out := component.Component{Name: "parameters of admission policies"}
	for _, plural := range []string{
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	} {
		out.Extend = append(out.Extend, component.Extension{
			Resource: plural + "." + v1.GroupName,
			Strategy: func(s resource.Strategy) resource.Strategy { return guard{Strategy: s, parameters: p} },
		})
	}
	return out
}

// guard adds to the rules of a kind whether its author may read the parameters.
type guard struct {
	resource.Strategy
	parameters Parameters
}

// Validate implements [resource.Strategy].
func (g guard) Validate(ctx context.Context, obj, old resource.Object) field.ErrorList {
	if errs := g.Strategy.Validate(ctx, obj, old); len(errs) > 0 {
		return errs
	}
	r := resource.RequestFrom(ctx)
	if r == nil || r.User.In(auth.Masters) {
		return nil
	}
	name, err := g.parameters.check(ctx, r.User, obj, old)
	if err != nil {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", name), err.Error())}
	}
	return nil
}

// check returns why an object is refused, and the field of which that is said.
func (p Parameters) check(ctx context.Context, user *auth.User, obj, old resource.Object) (string, error) {
	const kinds, refs = "paramKind", "paramRef"
	obj, old, err := asStable(obj, old)
	if err != nil {
		return "", err
	}
	switch obj := obj.(type) {
	case *v1.ValidatingAdmissionPolicy:
		old, _ := old.(*v1.ValidatingAdmissionPolicy)
		if old != nil && same(old.Spec.ParamKind, obj.Spec.ParamKind) {
			return "", nil
		}
		return kinds, p.policy(ctx, user, obj.Spec.ParamKind)
	case *v1.MutatingAdmissionPolicy:
		old, _ := old.(*v1.MutatingAdmissionPolicy)
		if old != nil && same(old.Spec.ParamKind, obj.Spec.ParamKind) {
			return "", nil
		}
		return kinds, p.policy(ctx, user, obj.Spec.ParamKind)
	case *v1.ValidatingAdmissionPolicyBinding:
		return refs, p.binding(ctx, user, "validatingadmissionpolicies", obj.Spec.PolicyName, obj.Spec.ParamRef)
	case *v1.MutatingAdmissionPolicyBinding:
		return refs, p.binding(ctx, user, "mutatingadmissionpolicies", obj.Spec.PolicyName, obj.Spec.ParamRef)
	}
	return "", nil
}

func same(old, now *v1.ParamKind) bool { return old != nil && now != nil && *old == *now }

// policy checks that all objects of a kind of parameters may be read.
func (p Parameters) policy(ctx context.Context, user *auth.User, k *v1.ParamKind) error {
	if k == nil {
		return nil
	}
	a, _ := p.read(k)
	a.User, a.Verb, a.Namespace, a.Name = user, "get", "*", "*"
	allowed, err := p.may(ctx, a)
	if err == nil && !allowed {
		err = fmt.Errorf(`user %v must have "get" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)`, shown(user), k.Kind, k.APIVersion)
	}
	return err
}

// binding checks that the parameters of a binding may be read, also if they are the
// same as before.
func (p Parameters) binding(ctx context.Context, user *auth.User, plural, policy string, ref *v1.ParamRef) error {
	if ref == nil {
		return nil
	}
	k, known := p.paramKind(plural, policy)
	a, what := p.read(k)
	a.User, a.Verb, a.Namespace, a.Name = user, "get", ref.Namespace, ref.Name
	if ref.Name == "" {
		a.Verb = "list"
	}
	allowed, err := p.may(ctx, a)
	switch {
	case err != nil:
		err = fmt.Errorf("failed to authorize request: %w", err)
	case allowed:
	case !known:
		err = fmt.Errorf(`unable to get policy %s to determine minimum required permissions and user %v does not have "%v" permission for all groups, versions and resources`,
			policy, shown(user), a.Verb)
	case what != "":
		err = fmt.Errorf(`unable to %s paramKind %v to determine minimum required permissions and user %v does not have "%v" permission for all groups, versions and resources`,
			what, k, shown(user), a.Verb)
	default: // in these words, with user and verb the wrong way round
		err = fmt.Errorf(`user %v does not have "%v" permission on the object referenced by paramRef`, a.Verb, shown(user))
	}
	return err
}

// paramKind returns the kind of the parameters of a policy, nil if it has none, and
// whether there is such a policy.
func (p Parameters) paramKind(plural, name string) (*v1.ParamKind, bool) {
	rec := p.Store.Get(storage.Key{Bucket: v1.GroupName + "/" + plural, Name: name})
	if rec == nil {
		return nil, false
	}
	var policy struct {
		Spec struct{ ParamKind *v1.ParamKind }
	}
	if json.Unmarshal(rec.Value, &policy) != nil {
		return nil, false
	}
	return policy.Spec.ParamKind, true
}

// read returns what reading objects of a kind is, as far as that can be told, and
// what cannot be done to tell it.
func (p Parameters) read(k *v1.ParamKind) (*auth.Attributes, string) {
	a := &auth.Attributes{ResourceRequest: true, Group: all, Version: all, Resource: all}
	if k == nil {
		return a, ""
	}
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	if err != nil {
		return a, "parse"
	}
	a.Group, a.Version = gv.Group, gv.Version
	r, served := p.Catalog.Kind(k.APIVersion, k.Kind)
	if !served {
		return a, "resolve"
	}
	a.Resource = r.Plural
	return a, ""
}

func (p Parameters) may(ctx context.Context, a *auth.Attributes) (bool, error) {
	decision, _, err := p.Authorizer.Authorize(ctx, a)
	return decision == auth.Allow, err
}

// shown is a user as errors show one.
func shown(u *auth.User) any {
	return &struct {
		Name, UID string
		Groups    []string
		Extra     map[string][]string
	}{u.Name, u.UID, u.Groups, u.Extra}
}
