// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/wiretest"
	"github.com/steer-dev/steer/controlplane/component"
)

// Conversations are sent to servers that have some parts and nothing else: each
// conversation to a server of its own. The answers must be those of kube-apiserver that
// are recorded in oracle/testdata.
type Conversations struct {
	// Names of the conversations. Of their requests those are sent that concern a
	// resource, and a subresource if they name one, of the parts.
	Names []string
	// Parts of the servers.
	Parts func(*component.Deps) component.List
	// Of names the resources whose answers are compared, as CustomResourceDefinitions are
	// named: "pods", "deployments.apps". Empty: all of the parts.
	Of []string
	// Except has the requests whose answers depend on parts that the server does not
	// have: a reason for those that it ends. "kinds-pods/log" is one request,
	// "kinds-pods/log-*" are those whose names begin so. Their answers differ; one that
	// does not is an error, unless the entry is of several.
	Except map[string]string
}

// Run sends the requests and compares the answers.
func (c Conversations) Run(t *testing.T) {
	t.Helper()
	dir := recordings(t)
	scripts, err := wiretest.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := wiretest.LoadLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	scripts = slices.DeleteFunc(scripts, func(s *wiretest.Script) bool { return !slices.Contains(c.Names, s.Name) })
	if len(scripts) != len(c.Names) {
		t.Fatalf("of the conversations %q there are %d", c.Names, len(scripts))
	}
	unused := maps.Clone(c.Except)
	for _, script := range scripts {
		t.Run(script.Name, func(t *testing.T) {
			compared := 0
			for _, answer := range c.send(t, script) {
				if name, _ := target(answer.Step); len(c.Of) > 0 && !slices.Contains(c.Of, name) {
					continue
				}
				compared++
				key := script.Name + "/" + answer.Step.Name
				verdict, want := ledger.Judge(script, answer)
				wrong := verdict == wiretest.Differs || verdict == wiretest.Mended
				exception := c.exception(key)
				switch {
				case exception == "" && wrong:
					t.Errorf("%s (-kube-apiserver +steer):\n%s", key, cmp.Diff(want, answer.Text))
				case exception != "" && wrong:
					delete(unused, exception)
				case exception == key:
					t.Errorf("%s is answered as by kube-apiserver: take it off the exceptions", key)
				}
			}
			if compared == 0 {
				t.Error("no request of this conversation is compared")
			}
		})
	}
	for _, key := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("the exception %s is of no answer that differs", key)
	}
}

// exception returns the entry of a request, "" if there is none.
func (c Conversations) exception(key string) string {
	for entry := range c.Except {
		begin, several := strings.CutSuffix(entry, "*")
		if entry == key || several && strings.HasPrefix(key, begin) {
			return entry
		}
	}
	return ""
}

func (c Conversations) send(t *testing.T, script *wiretest.Script) []wiretest.Answer {
	t.Helper()
	s := New(t, c.Parts)
	served, err := s.list.Resources()
	if err != nil {
		t.Fatal(err)
	}
	script.Steps = slices.DeleteFunc(script.Steps, func(step *wiretest.Step) bool {
		return !slices.ContainsFunc(served, func(r *resource.Resource) bool { return serves(r, step) })
	})
	// The controllers are done before each request, so that none is repeated.
	server := wiretest.Target{Client: &http.Client{Transport: users{s}}, Base: "https://steer.invalid", Patience: time.Nanosecond}
	answers, err := server.Run(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// users sends requests as the administrator, or as the user whose token they carry: the
// recorder gave kube-apiserver the token "user-token" of the user "user".
type users struct{ server *Server }

// RoundTrip implements [http.RoundTripper].
func (u users) RoundTrip(r *http.Request) (*http.Response, error) {
	user := Admin()
	if r.Header.Get("Authorization") == "Bearer user-token" {
		user = &auth.User{Name: "user", UID: "user", Groups: []string{auth.Authenticated}}
	}
	return settled{u.server, user}.RoundTrip(r)
}

// serves reports whether a resource has what a request concerns.
func serves(r *resource.Resource, s *wiretest.Step) bool {
	name, subresource := target(s)
	return name == r.GroupResource().String() && (subresource == "" || slices.ContainsFunc(r.Versions, func(v resource.Version) bool {
		return subresource == "status" || subresource == "scale" || v.Subresource(subresource) != nil
	}))
}

// target returns the names of the resource and of the subresource that a request concerns,
// "" if there is none.
func target(s *wiretest.Step) (name, subresource string) {
	path, _, _ := strings.Cut(s.Target, "?")
	group, parts := "", strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	default:
		return "", ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		subresource = parts[2]
	}
	return schema.GroupResource{Group: group, Resource: parts[0]}.String(), subresource
}

// recordings returns the folder of the conversations, which is above that of the test.
func recordings(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		found := filepath.Join(dir, "oracle", "testdata")
		if _, err := os.Stat(found); err == nil {
			return found
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("there is no folder oracle/testdata above that of the test")
		}
		dir = up
	}
}
