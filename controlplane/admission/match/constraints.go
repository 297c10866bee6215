// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Constraints say which requests one webhook, policy or binding is about. They are made
// once per version of their configuration and are safe for concurrent use.
type Constraints struct {
	// rules of the requests; none: all, if any is set.
	rules, excludes []v1.NamedRuleWithOperations
	any             bool
	exact           bool
	namespaces      labels.Selector
	objects         labels.Selector
	// broken is why a selector cannot be used; requests that the rules name fail.
	broken error
}

// Invocation is how a webhook or a policy sees a request: as one for this resource, with
// objects of this kind. It differs from the request where a rule names another version.
type Invocation struct {
	Resource    schema.GroupVersionResource
	Subresource string
	Kind        schema.GroupVersionKind
}

// NewConstraints compiles the constraints of a webhook.
func NewConstraints(rules []v1.RuleWithOperations, policy *v1.MatchPolicyType, namespaces, objects *metav1.LabelSelector) *Constraints {
	c := &Constraints{exact: policy == nil || *policy == v1.Exact}
	for _, r := range rules {
		c.rules = append(c.rules, v1.NamedRuleWithOperations{RuleWithOperations: r})
	}
	c.setSelectors(namespaces, objects)
	return c
}

// NewPolicyConstraints compiles the constraints of a policy or a binding; nil matches
// everything, and so does one without rules.
func NewPolicyConstraints(m *v1.MatchResources) *Constraints {
	if m == nil {
		m = &v1.MatchResources{}
	}
	c := &Constraints{
		rules: m.ResourceRules, excludes: m.ExcludeResourceRules, any: len(m.ResourceRules) == 0,
		exact: m.MatchPolicy == nil || *m.MatchPolicy == v1.Exact,
	}
	c.setSelectors(m.NamespaceSelector, m.ObjectSelector)
	return c
}

func (c *Constraints) setSelectors(namespaces, objects *metav1.LabelSelector) {
	var err error
	if c.namespaces, err = selector(namespaces); err != nil {
		c.broken = err
	}
	if c.objects, err = selector(objects); err != nil {
		c.broken = err
	}
}

// selector returns nil for a selector that selects everything, or is not set.
func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return nil, nil // everything is selected
	}
	return metav1.LabelSelectorAsSelector(s)
}

// Matches reports whether a request is one of those that the constraints describe, and how
// the webhook or policy is to see it. An error is an API status.
func (c *Constraints) Matches(ctx context.Context, q *Request) (as Invocation, ok bool, err error) {
	if c.broken == nil && !c.selects(q.AdmissionRequest) {
		return as, false, nil
	}
	selected, nsErr := c.selectsNamespace(ctx, q)
	if !selected && nsErr == nil {
		return as, false, nil
	}
	if _, excluded, err := c.named(q, c.excludes); excluded || err != nil {
		return as, false, err
	}
	as = q.invocation()
	if !c.any {
		if as, ok, err = c.named(q, c.rules); !ok || err != nil {
			return as, false, err
		}
	}
	switch {
	case c.broken != nil:
		return as, false, apierrors.NewInternalError(c.broken)
	case nsErr != nil:
		return as, false, nsErr
	}
	return as, true, nil
}

// invocation is the request as it is.
func (q *Request) invocation() Invocation {
	return Invocation{Resource: q.GVR, Subresource: q.Subresource, Kind: q.Kind}
}

// selects reports whether the object or the old object has the labels.
func (c *Constraints) selects(r *resource.AdmissionRequest) bool {
	if c.objects == nil {
		return true
	}
	has := func(obj resource.Object) bool { return obj != nil && c.objects.Matches(labels.Set(obj.GetLabels())) }
	return has(r.Object) || has(r.Old)
}

func (c *Constraints) selectsNamespace(ctx context.Context, q *Request) (bool, error) {
	if c.namespaces == nil {
		return true, nil
	}
	of, scoped, err := q.namespaceLabels(ctx)
	if !scoped {
		return true, nil
	}
	return err == nil && c.namespaces.Matches(labels.Set(of)), err
}

// named finds the first rule that names the request; equivalent resources are looked at
// after the resource itself.
func (c *Constraints) named(q *Request, rules []v1.NamedRuleWithOperations) (Invocation, bool, error) {
	if len(rules) == 0 {
		return Invocation{}, false, nil
	}
	t := target{resource: q.GVR, subresource: q.Subresource, operation: q.Operation, namespaced: q.Resource.Namespaced}
	if matchesAny(&t, rules, q.Name) {
		return q.invocation(), true, nil
	}
	if c.exact {
		return Invocation{}, false, nil
	}
	all := q.equivalents()
	for i := range rules {
		for k := range all {
			t.resource = all[k].gvr
			if !matchesAny(&t, rules[i:i+1], q.Name) {
				continue
			}
			if all[k].kind.Empty() {
				return Invocation{}, false, apierrors.NewInternalError(fmt.Errorf("unable to convert to %v: unknown kind", t.resource))
			}
			return Invocation{Resource: t.resource, Subresource: q.Subresource, Kind: all[k].kind}, true, nil
		}
	}
	return Invocation{}, false, nil
}

func matchesAny(t *target, rules []v1.NamedRuleWithOperations, name string) bool {
	for i := range rules {
		r := &rules[i]
		if t.matches(&r.RuleWithOperations) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name)) {
			return true
		}
	}
	return false
}

// mayName reports whether the rules name a resource at all, in any of its versions: it
// ignores the names of objects, and what is excluded.
func (c *Constraints) mayName(t target, others []equivalent) bool {
	if c.any {
		return true
	}
	for i := range c.rules {
		if t.matches(&c.rules[i].RuleWithOperations) {
			return true
		}
	}
	if c.exact {
		return false
	}
	for k := range others {
		t.resource = others[k].gvr
		for i := range c.rules {
			if t.matches(&c.rules[i].RuleWithOperations) {
				return true
			}
		}
	}
	return false
}
