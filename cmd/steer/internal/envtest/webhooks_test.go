// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
)

// reviewing starts a webhook, and returns a kubeconfig that leads to it.
func reviewing(t *testing.T, answer func(review map[string]any)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != "/review" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		answer(review)
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
		"users: [{name: a, user: {}}]\nclusters: [{name: a, cluster: {server: %q}}]\n", server.URL+"/review")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAuthorizationWebhookIsAskedInItsPlace(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	for version, groups := range map[string]string{"v1": "groups", "v1beta1": "group"} {
		file := reviewing(t, func(review map[string]any) {
			asked.Add(1)
			spec := review["spec"].(map[string]any)
			if review["apiVersion"] != "authorization.k8s.io/"+version || fmt.Sprint(spec[groups]) != "[dev]" {
				t.Errorf("the review is %v", review)
			}
			review["status"] = map[string]any{"allowed": spec["user"] == "jane", "denied": spec["user"] == "mallory", "reason": "so it is"}
		})
		parse := func(args ...string) (auth.Authorizer, error) {
			var z authorizationFlags
			f := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
			z.register(f)
			if err := f.Parse(append(args, "--authorization-webhook-config-file="+file, "--authorization-webhook-version="+version)); err != nil {
				t.Fatal(err)
			}
			return z.authorizer()
		}
		may, err := parse("--authorization-mode=Webhook,AlwaysAllow")
		if err != nil {
			t.Fatal(err)
		}
		asked.Store(0)
		for name, want := range map[string]auth.Decision{"jane": auth.Allow, "joe": auth.Allow, "mallory": auth.Deny} {
			for range 2 {
				a := &auth.Attributes{User: &auth.User{Name: name, Groups: []string{"dev"}}, Verb: "get", Path: "/x"}
				if got, reason, err := may.Authorize(t.Context(), a); got != want || err != nil || name != "joe" && reason != "so it is" {
					t.Errorf("%s: %s: %v, %q, %v; want %v", version, name, got, reason, err, want)
				}
			}
		}
		if n := asked.Load(); n != 3 {
			t.Errorf("%s: asked %d times, want once for each user", version, n)
		}
		if _, err := parse("--authorization-mode=RBAC"); err == nil || !strings.Contains(err.Error(), "belong together") {
			t.Errorf("without the mode: %v", err)
		}
	}
}

func TestTokenWebhookIsAskedAboutUnknownTokens(t *testing.T) {
	t.Parallel()
	file := reviewing(t, func(review map[string]any) {
		good := review["spec"].(map[string]any)["token"] == "good"
		review["status"] = map[string]any{"authenticated": good, "user": map[string]any{"username": "jane", "groups": []string{"dev"}}}
	})
	o := controlplane.Authentication{Keys: &controlplane.Keys{}}
	if err := parsed(t, "--authentication-token-webhook-config-file="+file).apply(&o); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{"good": "jane", "bad": ""} {
		user, meant, err := o.TokenReviewers[0].AuthenticateToken(t.Context(), token, []string{"us"})
		if name := ""; err != nil || meant != nil || user != nil && user.Name != want || user == nil && want != name {
			t.Errorf("%s: %v, %v, %v; want %q", token, user, meant, err, want)
		}
	}
	if err := parsed(t, "--authentication-token-webhook-config-file="+file, "--authentication-token-webhook-version=v2").apply(&o); err == nil || !strings.Contains(err.Error(), `--authentication-token-webhook-version: "v2" is neither v1 nor v1beta1`) {
		t.Errorf("another version: %v", err)
	}
}
