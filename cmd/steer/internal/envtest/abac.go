// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/steer-dev/steer/apiserver/auth"
)

// policyVersion is that of the lines of a file with policies.
const policyVersion = "abac.authorization.kubernetes.io/v1beta1"

// policies are the lines of a file for --authorization-policy-file. What one of them allows is
// allowed.
type policies []policy

// policy is the spec of a line. "*" is any name; an empty one is none.
type policy struct {
	User            string `json:"user"`
	Group           string `json:"group"`
	Readonly        bool   `json:"readonly"`
	APIGroup        string `json:"apiGroup"`
	Resource        string `json:"resource"`
	Namespace       string `json:"namespace"`
	NonResourcePath string `json:"nonResourcePath"`
}

var _ interface {
	auth.Authorizer
	auth.RuleLister
} = policies(nil)

// readPolicies reads a file: an object of JSON on each line, comments after a #.
func readPolicies(file string) (policies, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out policies
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		p, err := readPolicy(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// readPolicy reads a line. One without apiVersion and kind is of the version before the first:
// what it does not name is any, and its users are those that have shown who they are.
func readPolicy(line []byte) (policy, error) {
	var p struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       policy `json:"spec"`
		User       string `json:"user"`
		Group      string `json:"group"`
		Readonly   bool   `json:"readonly"`
		Resource   string `json:"resource"`
		Namespace  string `json:"namespace"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return policy{}, err
	}
	old := policy{User: p.User, Group: p.Group, Readonly: p.Readonly, Resource: p.Resource, Namespace: p.Namespace}
	switch {
	case p.APIVersion == policyVersion && p.Kind == "Policy" && old == policy{}:
		return p.Spec, nil
	case p.APIVersion != "" || p.Kind != "" || p.Spec != policy{}:
		return policy{}, fmt.Errorf("it is a %q of %q, want a Policy of %s with its fields in spec", p.Kind, p.APIVersion, policyVersion)
	}
	if old.User == "" && old.Group == "" || old.User == "*" || old.Group == "*" {
		old.User, old.Group = "", auth.Authenticated
	}
	if old.Namespace == "" && old.Resource == "" {
		old.NonResourcePath = "*"
	}
	old.APIGroup, old.Namespace, old.Resource = "*", cmp.Or(old.Namespace, "*"), cmp.Or(old.Resource, "*")
	return old, nil
}

// Authorize implements [auth.Authorizer].
func (l policies) Authorize(_ context.Context, a *auth.Attributes) (auth.Decision, string, error) {
	for i := range l {
		if p := &l[i]; p.isOf(a.User) && (!p.Readonly || reads(a.Verb)) && p.covers(a) {
			return auth.Allow, "", nil
		}
	}
	return auth.NoOpinion, "abac: No policy matched.", nil
}

// isOf reports whether a policy is about a user: it names one or a group, and what it names is so.
func (p *policy) isOf(u *auth.User) bool {
	return (p.User != "" || p.Group != "") && (p.User == "" || p.User == "*" || p.User == u.Name) && (p.Group == "" || p.Group == "*" || u.In(p.Group))
}

// covers reports whether a policy is about the path or the resource of a request.
func (p *policy) covers(a *auth.Attributes) bool {
	is := func(pattern, name string) bool { return pattern == "*" || pattern == name }
	if a.ResourceRequest {
		return is(p.Namespace, a.Namespace) && is(p.Resource, a.Resource) && is(p.APIGroup, a.Group)
	}
	return auth.MatchesPath(p.NonResourcePath, a.Path)
}

// reads reports whether a verb changes nothing.
func reads(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

// Rules implements [auth.RuleLister].
func (l policies) Rules(_ context.Context, user *auth.User, namespace string) (auth.Rules, error) {
	var out auth.Rules
	for i := range l {
		p := &l[i]
		if !p.isOf(user) || p.Namespace != "*" && p.Namespace != namespace {
			continue
		}
		verbs := []string{"*"}
		if p.Readonly {
			verbs = []string{"get", "list", "watch"}
		}
		if p.Resource != "" {
			out.Resource = append(out.Resource, authorizationv1.ResourceRule{Verbs: verbs, APIGroups: []string{p.APIGroup}, Resources: []string{p.Resource}})
		}
		if p.NonResourcePath != "" {
			out.NonResource = append(out.NonResource, authorizationv1.NonResourceRule{Verbs: verbs, NonResourceURLs: []string{p.NonResourcePath}})
		}
	}
	return out, nil
}
