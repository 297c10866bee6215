// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
)

// TestFrontNamesUsersAndAsksItsAuthorizer sends requests of several users to a front, and looks at
// what comes through.
func TestFrontNamesUsersAndAsksItsAuthorizer(t *testing.T) {
	t.Parallel()
	var through *http.Request
	steer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" {
			if r.Header.Get("Authorization") != "Bearer steers" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Warning", "299 - an old token")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"status":{"userInfo":{"username":"known"}}}`)
			return
		}
		through = r
	}))
	t.Cleanup(steer.Close)
	own := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if bearer(r) != "own" {
			return nil, false, errors.New("not one of these")
		}
		r.Header.Del("Authorization")
		return &authenticator.Response{User: &user.DefaultInfo{Name: "bob", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"example.com/k": {"v"}}}}, true, nil
	})
	either := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if _, _, err := (Delegate{}).AuthenticateRequest(r); err != nil {
			t.Error(err)
		}
		return own.AuthenticateRequest(r)
	})
	reads := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() == "list" && a.GetResource() == "pods" && a.GetNamespace() == "n" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "no", nil
	})
	const pods, secrets = "/api/v1/namespaces/n/pods", "/api/v1/namespaces/n/secrets"
	for _, test := range []struct {
		name        string
		front       Front
		token, path string
		code        int    // 200: it comes through
		as, with    string // the user that is impersonated, and the token
	}{
		{"the administrator", Front{own, reads}, "admin", secrets, 200, "", "admin"},
		{"a user of the test", Front{own, nil}, "own", secrets, 200, "bob", "admin"},
		{"a user of Steer, which is not asked", Front{own, nil}, "steers", secrets, 401, "", ""},
		{"a user of Steer, which is asked", Front{either, nil}, "steers", secrets, 200, "", "steers"},
		{"a user of the test, where Steer is asked too", Front{either, nil}, "own", secrets, 200, "bob", "admin"},
		{"what the authorizer allows a user of Steer", Front{nil, reads}, "steers", pods, 200, "", "steers"},
		{"what it does not", Front{nil, reads}, "steers", secrets, 403, "", ""},
		{"what it allows a user of the test", Front{own, reads}, "own", pods, 200, "bob", "admin"},
		{"a token of no user is Steer's to refuse", Front{nil, reads}, "x", pods, 200, "", "x"},
	} {
		through = nil
		server, err := newFront(test.front, &rest.Config{Host: steer.URL, BearerToken: "admin"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+test.token)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		server.Close()
		if refused := test.code == 403; refused != (answer.Header.Get("Warning") == "299 - an old token") {
			t.Errorf("%s: the warning of the answer is %q", test.name, answer.Header.Get("Warning"))
		}
		if answer.StatusCode != test.code || (through != nil) != (test.code == 200) {
			t.Errorf("%s: %d, through %t", test.name, answer.StatusCode, through != nil)
			continue
		}
		if through == nil {
			continue
		}
		h := through.Header
		if as := h.Get("Impersonate-User"); as != test.as || bearer(through) != test.with {
			t.Errorf("%s: as %q with %q, want %q with %q", test.name, as, bearer(through), test.as, test.with)
		}
		if test.as != "" && (!slices.Equal(h.Values("Impersonate-Group"), []string{"a", "b"}) || h.Get("Impersonate-Uid") != "7" || h.Get("Impersonate-Extra-Example.com%2fk") != "v") {
			t.Errorf("%s: the headers are %v", test.name, h)
		}
	}
}
