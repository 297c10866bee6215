// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/internal/step"
)

func TestOnlyLocalAcceptsLoopbackAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:6443": true, "localhost:0": true, "[::1]:1": true,
		":6443": false, "0.0.0.0:6443": false, "192.0.2.1:1": false, "[::]:1": false, "nonsense": false,
	} {
		if got := onlyLocal(address); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

// allowing allows one verb on one resource, and lists no rules.
type allowing struct{ verb, resource string }

func (a allowing) Authorize(_ context.Context, asked *auth.Attributes) (auth.Decision, string, error) {
	if asked.Verb == a.verb && asked.Resource == a.resource {
		return auth.Allow, "", nil
	}
	return auth.NoOpinion, "", nil
}

func TestListenRefusesPublicAddressesWithAnOpenAuthorizer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options Options
		exposed bool
	}{
		"everything is allowed":                      {Options{Authorizer: auth.AllowAll{}}, true},
		"everything is allowed, but not anonymously": {Options{Authorizer: auth.AllowAll{}, Authentication: Authentication{NoAnonymous: true}}, false},
		"masters only":                               {Options{Authorizer: auth.AllowMasters{}}, false},
		"roles of a fresh cluster":                   {Options{}, false},
		"an authorizer without rules, closed":        {Options{Authorizer: allowing{}}, false},
		"an authorizer without rules, reads":         {Options{Authorizer: allowing{"list", "secrets"}}, true},
		"one of several without rules, writes":       {Options{Authorizer: auth.Authorizers{auth.AllowMasters{}, allowing{"patch", "configmaps"}}}, true},
		"public paths only":                          {Options{Authorizer: auth.AllowPaths{"/version"}}, false},
		"all paths, snapshots included":              {Options{Authorizer: auth.AllowPaths{"/*"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planeOf(t, c.options)
			if err := p.mayListen(t.Context(), "0.0.0.0:0"); errors.Is(err, ErrUnprotected) != c.exposed || !c.exposed && err != nil {
				t.Errorf("error %v, want refused: %v", err, c.exposed)
			}
			if err := p.mayListen(t.Context(), "127.0.0.1:0"); err != nil {
				t.Errorf("a loopback address: %v", err)
			}
		})
	}
}

func TestListenRefusesPublicAddressesWithBindingsForAnonymous(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rules, subject, want string }{
		"anonymous reads":         {`[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}]`, `"kind":"User","name":"system:anonymous"`, `list configmaps in the namespace "kube-public"`},
		"strangers write":         {`[{"apiGroups":[""],"resources":["pods"],"verbs":["create"]}]`, `"kind":"Group","name":"system:unauthenticated"`, `create pods in the namespace "kube-public"`},
		"an object is published":  {`[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["cluster-info"],"verbs":["get"]}]`, `"kind":"User","name":"system:anonymous"`, ""},
		"a Secret is published":   {`[{"apiGroups":[""],"resources":["secrets"],"resourceNames":["key"],"verbs":["get"]}]`, `"kind":"User","name":"system:anonymous"`, "get secrets"},
		"a named object changes":  {`[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["x"],"verbs":["get","update"]}]`, `"kind":"User","name":"system:anonymous"`, "get, update configmaps"},
		"users with credentials":  {`[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}]`, `"kind":"Group","name":"system:authenticated"`, ""},
		"a role without any rule": {`[]`, `"kind":"User","name":"system:anonymous"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planeOf(t, Options{})
			for plural, body := range map[string]string{
				"roles":        `{"metadata":{"name":"r"},"rules":` + c.rules + `}`,
				"rolebindings": `{"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io",` + c.subject + `}]}`,
			} {
				if err := p.send(t.Context(), step.Request{
					User: step.APIServer, Method: http.MethodPost, ContentType: step.JSON, Body: []byte(body),
					Path: "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/" + plural,
				}); err != nil {
					t.Fatal(err)
				}
			}
			err := p.mayListen(t.Context(), "0.0.0.0:0")
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrUnprotected) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// planeOf returns a plane in memory, stopped with the test.
func planeOf(t *testing.T, o Options) *Plane {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}
