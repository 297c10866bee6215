// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRightsOfRequestsAreThoseOfMarkers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, target string
		status         int
		want           string
	}{
		{"GET", "/api/v1/namespaces/default/pods?watch=true", 200, `groups="",resources=pods,verbs=watch`},
		{"GET", "/api/v1/pods?limit=500", 200, `groups="",resources=pods,verbs=list`},
		{"GET", "/api/v1/namespaces/default", 200, `groups="",resources=namespaces,verbs=get`},
		{"PUT", "/api/v1/namespaces/default/finalize", 200, `groups="",resources=namespaces/finalize,verbs=update`},
		{"POST", "/apis/apps/v1/namespaces/default/deployments", 403, "groups=apps,resources=deployments,verbs=create"},
		{"PATCH", "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=a", 200, "groups=apps,resources=deployments,verbs=patch"},
		{"PATCH", "/apis/apps/v1/namespaces/default/deployments/web", 201, "groups=apps,resources=deployments,verbs=create groups=apps,resources=deployments,verbs=patch"},
		{"PATCH", "/apis/example.com/v1/things/one/status", 200, "groups=example.com,resources=things/status,verbs=patch"},
		{"DELETE", "/apis/example.com/v1/things/one", 200, "groups=example.com,resources=things,verbs=delete"},
		{"DELETE", "/apis/example.com/v1/things?labelSelector=a", 200, "groups=example.com,resources=things,verbs=deletecollection"},
		{"GET", "/api/v1", 200, ""},
		{"GET", "/apis/apps/v1", 200, ""},
		{"GET", "/version", 200, ""},
	} {
		u, err := url.Parse(test.target)
		if err != nil {
			t.Fatal(err)
		}
		var r Rights
		r.NoteRequest(test.method, u, test.status)
		dir := t.TempDir()
		if err := r.Write(dir, "TestName"); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.rights"))
		if err != nil || len(files) != 1 {
			t.Fatalf("files %v, %v", files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		name, used, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		if used = strings.ReplaceAll(used, "\n", " "); used != test.want || name != "TestName" {
			t.Errorf("%s %s: got %q of %q, want %q", test.method, test.target, used, name, test.want)
		}
	}
}
