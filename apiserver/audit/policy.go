// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	api "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/apis/audit/validation"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/auth"
)

// Policy says which requests are recorded, and how much of them. It is immutable.
type Policy struct{ policy auditv1.Policy }

// verdict is what a policy says about a request.
type verdict struct {
	level             auditv1.Level
	omitStages        []auditv1.Stage
	omitManagedFields bool
}

// ParsePolicy reads a Policy of audit.k8s.io/v1, as YAML or JSON. Fields that it does not
// have are errors.
func ParsePolicy(text []byte) (*Policy, error) {
	p := &Policy{}
	if err := yaml.UnmarshalStrict(text, &p.policy); err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	if got, want := p.policy.GroupVersionKind(), auditv1.SchemeGroupVersion.WithKind("Policy"); got != want {
		return nil, fmt.Errorf("it is a %q of %q, want a %s of %s", p.policy.Kind, p.policy.APIVersion, want.Kind, want.GroupVersion())
	}
	if len(p.policy.Rules) == 0 {
		return nil, errors.New("rules: there are none, so that nothing would be recorded: add one, such as {level: Metadata}")
	}
	var internal api.Policy
	if err := auditv1.Convert_v1_Policy_To_audit_Policy(&p.policy, &internal, nil); err != nil {
		return nil, err
	}
	if errs := validation.ValidatePolicy(&internal); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return p, nil
}

// judge finds the first rule that is about a request. Without one the request is not recorded.
func (p *Policy) judge(a *auth.Attributes) verdict {
	v := verdict{level: auditv1.LevelNone, omitStages: p.policy.OmitStages, omitManagedFields: p.policy.OmitManagedFields}
	for i := range p.policy.Rules {
		rule := &p.policy.Rules[i]
		if !concerns(rule, a) {
			continue
		}
		v.level = rule.Level
		v.omitStages = slices.Concat(v.omitStages, rule.OmitStages)
		if rule.OmitManagedFields != nil {
			v.omitManagedFields = *rule.OmitManagedFields
		}
		return v
	}
	return v
}

// concerns reports whether all that a rule names is that of the request.
func concerns(rule *auditv1.PolicyRule, a *auth.Attributes) bool {
	switch {
	case len(rule.Users) > 0 && (a.User == nil || !slices.Contains(rule.Users, a.User.Name)):
		return false
	case len(rule.UserGroups) > 0 && !slices.ContainsFunc(rule.UserGroups, a.User.In):
		return false
	case len(rule.Verbs) > 0 && !slices.Contains(rule.Verbs, a.Verb):
		return false
	case len(rule.Namespaces) == 0 && len(rule.Resources) == 0:
		return len(rule.NonResourceURLs) == 0 || !a.ResourceRequest && slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return auth.MatchesPath(pattern, a.Path) })
	case !a.ResourceRequest:
		return false
	case len(rule.Namespaces) > 0 && !slices.Contains(rule.Namespaces, a.Namespace):
		return false
	}
	return len(rule.Resources) == 0 || slices.ContainsFunc(rule.Resources, func(r auditv1.GroupResources) bool { return matchesResource(&r, a) })
}

// matchesResource matches the resource of a request with those of one group. A name such as
// "pods" is not about the subresources of Pods.
func matchesResource(in *auditv1.GroupResources, a *auth.Attributes) bool {
	if in.Group != "*" && in.Group != a.Group {
		return false
	}
	if len(in.Resources) == 0 {
		return true
	}
	if len(in.ResourceNames) > 0 && !slices.Contains(in.ResourceNames, a.Name) {
		return false
	}
	for _, pattern := range in.Resources {
		resource, subresource, below := strings.Cut(pattern, "/")
		switch {
		case pattern == "*":
			return true
		case !below && a.Subresource == "" && resource == a.Resource,
			below && subresource == "*" && resource == a.Resource, // the resource itself as well, as in kube-apiserver
			below && a.Subresource != "" && subresource == a.Subresource && (resource == "*" || resource == a.Resource):
			return true
		}
	}
	return false
}
