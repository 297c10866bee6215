// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/apiserver/auth"
)

func policyFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPoliciesAllowWhatTheyName(t *testing.T) {
	t.Parallel()
	line := func(spec string) string {
		return `{"apiVersion":"` + policyVersion + `","kind":"Policy","spec":{` + spec + "}}\n"
	}
	file := policyFile(t, "# people\n\n"+
		line(`"user":"alice","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"*"`)+
		line(`"user":"bob","namespace":"n","resource":"pods","apiGroup":"","readonly":true`)+
		line(`"group":"ops","nonResourcePath":"/metrics*"`)+
		line(`"user":"carol","group":"ops","namespace":"n","resource":"*","apiGroup":"apps"`)+
		line(`"namespace":"*","resource":"*","apiGroup":"*"`)) // it names no user
	authorizer, err := (&authorizationFlags{modes: []string{"ABAC"}, policyFile: file}).authorizer()
	if err != nil {
		t.Fatal(err)
	}
	as := func(name string, groups ...string) *auth.User { return &auth.User{Name: name, Groups: groups} }
	of := func(u *auth.User, verb, group, resource, namespace string) *auth.Attributes {
		return &auth.Attributes{User: u, Verb: verb, Group: group, Resource: resource, Namespace: namespace, ResourceRequest: true}
	}
	for _, test := range []struct {
		a    *auth.Attributes
		want auth.Decision
	}{
		{of(as("alice"), "delete", "apps", "deployments", "n"), auth.Allow},
		{of(as("alice"), "create", "", "namespaces", ""), auth.Allow},
		{&auth.Attributes{User: as("alice"), Verb: "get", Path: "/version"}, auth.Allow},
		{of(as("bob"), "list", "", "pods", "n"), auth.Allow},
		{of(as("bob"), "create", "", "pods", "n"), auth.NoOpinion},
		{of(as("bob"), "list", "", "pods", "other"), auth.NoOpinion},
		{of(as("bob"), "list", "", "secrets", "n"), auth.NoOpinion},
		{&auth.Attributes{User: as("bob"), Verb: "get", Path: "/version"}, auth.NoOpinion},
		{&auth.Attributes{User: as("dan", "ops"), Verb: "get", Path: "/metrics/slis"}, auth.Allow},
		{&auth.Attributes{User: as("dan", "ops"), Verb: "get", Path: "/version"}, auth.NoOpinion},
		{of(as("carol", "ops"), "update", "apps", "deployments", "n"), auth.Allow},
		{of(as("carol"), "update", "apps", "deployments", "n"), auth.NoOpinion},
		{of(as("erin", "system:masters"), "update", "apps", "deployments", "n"), auth.Allow},
		{of(as("frank"), "get", "", "pods", "n"), auth.NoOpinion},
	} {
		if got, _, err := authorizer.Authorize(t.Context(), test.a); err != nil || got != test.want {
			t.Errorf("%s %s %s%s in %q: %v, %v, want %v", test.a.User.Name, test.a.Verb, test.a.Resource, test.a.Path, test.a.Namespace, got, err, test.want)
		}
	}
	rules, err := authorizer.(auth.RuleLister).Rules(t.Context(), as("bob", "ops"), "n")
	if err != nil || len(rules.Resource) != 1 || !slices.Equal(rules.Resource[0].Verbs, []string{"get", "list", "watch"}) || len(rules.NonResource) != 0 {
		t.Errorf("the rules of bob are %+v, %v", rules, err)
	}
}

// TestPoliciesWithoutAVersion are of the format before v1beta1, which kube-apiserver still reads.
func TestPoliciesWithoutAVersion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]policies{
		`{"namespace":"n"}`:                   {{Group: auth.Authenticated, Namespace: "n", Resource: "*", APIGroup: "*"}},
		`{"readonly":true}`:                   {{Group: auth.Authenticated, Namespace: "*", Resource: "*", APIGroup: "*", NonResourcePath: "*", Readonly: true}},
		`{"user":"bob","resource":"pods"}`:    {{User: "bob", Namespace: "*", Resource: "pods", APIGroup: "*"}},
		`{"user":"*","group":"ops"}`:          {{Group: auth.Authenticated, Namespace: "*", Resource: "*", APIGroup: "*", NonResourcePath: "*"}},
		`{"group":"ops","resource":"events"}`: {{Group: "ops", Namespace: "*", Resource: "events", APIGroup: "*"}},
	} {
		if got, err := readPolicies(policyFile(t, line)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", line, got, err, want)
		}
	}
}

func TestPoliciesThatCannotBeReadAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\n{":                                "policies.jsonl:2: unexpected EOF",
		`{"user":"alice","apiGroup":"apps"}`: `unknown field "apiGroup"`,
		`{"user":"alice","spec":{"user":"alice"}}`:                                     `it is a "" of "", want a Policy of `,
		`{"apiVersion":"v1","kind":"Policy","spec":{}}`:                                `it is a "Policy" of "v1", want a Policy of ` + policyVersion,
		`{"apiVersion":"` + policyVersion + `","kind":"Policy","spec":{"verb":"get"}}`: `unknown field "verb"`,
	} {
		if _, err := (&authorizationFlags{modes: []string{"ABAC"}, policyFile: policyFile(t, text)}).authorizer(); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--authorization-policy-file: ") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, test := range []struct {
		modes []string
		file  string
		want  string
	}{
		{[]string{"ABAC"}, "", "belong together"},
		{[]string{"RBAC"}, "x", "belong together"},
		{[]string{"ABAC"}, "/absent", "no such file"},
		{[]string{"Webhook"}, "", "--authorization-mode=Webhook and --authorization-webhook-config-file belong together"},
	} {
		if _, err := (&authorizationFlags{modes: test.modes, policyFile: test.file}).authorizer(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v with %q: %v, want %s", test.modes, test.file, err, test.want)
		}
	}
}

func TestAlwaysDenySaysSo(t *testing.T) {
	t.Parallel()
	denies, err := (&authorizationFlags{modes: []string{"AlwaysDeny"}}).authorizer()
	if err != nil {
		t.Fatal(err)
	}
	err = auth.Check(t.Context(), denies, &auth.Attributes{User: &auth.User{Name: "alice"}, Verb: "get", Path: "/apis"})
	if want := `User "alice" cannot get path "/apis": alwaysdeny: Everything is forbidden.`; err == nil || err.Error() != want {
		t.Errorf("alice: %v, want %s", err, want)
	}
	if err := auth.Check(t.Context(), denies, &auth.Attributes{User: &auth.User{Name: "root", Groups: []string{auth.Masters}}, Verb: "get", Path: "/apis"}); err != nil {
		t.Errorf("a member of system:masters: %v", err)
	}
}
