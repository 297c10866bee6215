// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/steertest"
)

// id is one of a request.
type id string

func (i id) String() string { return string(i) }

func TestAControlPlaneKnowsWhoWroteWhat(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme})
	alice := rest.CopyConfig(env.Config)
	alice.UserAgent = "editor/1.0"
	alice.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"system:masters"}}
	c, err := client.New(alice, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx := wire.WithAuditID(t.Context(), id("9f3c21aa65a1b2c3-42"))
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "page", Namespace: "default"}, Data: map[string]string{"a": "b"}}
	var want []notes.Note
	wrote := func(verb, manager string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, notes.Note{Verb: verb, Resource: "configmaps", Namespace: "default", Name: "page", User: "alice", UserAgent: "editor/1.0", FieldManager: manager, AuditID: "9f3c21aa65a1b2c3-42"})
	}
	wrote("create", "editor", c.Create(ctx, page))
	first := page.ResourceVersion
	if err := c.Update(ctx, page); err != nil { // it changes nothing, and has no revision
		t.Fatal(err)
	}
	page.Data["a"] = "c"
	if err := c.Update(ctx, page, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	page.Data["a"] = "d"
	wrote("update", "writer", c.Update(ctx, page, client.FieldOwner("writer")))
	wrote("delete", "editor", c.Delete(ctx, page))

	code, text := get(t, alice, notes.Path+"?resource=configmaps&name=page&from="+first)
	var got notes.List
	if err := json.Unmarshal(text, &got); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	if len(got.Items) != 3 || got.Items[1].Revision <= got.Items[0].Revision || got.Items[0].Time.IsZero() {
		t.Fatalf("%s", text)
	}
	for i := range got.Items {
		got.Items[i].Revision, got.Items[i].Time = 0, want[i].Time
	}
	if diff := cmp.Diff(want, got.Items); diff != "" {
		t.Error(diff)
	}

	bob := rest.CopyConfig(env.Config)
	bob.Impersonate = rest.ImpersonationConfig{UserName: "bob"}
	if code, text := get(t, bob, notes.Path); code != http.StatusForbidden {
		t.Errorf("without the right: %d %s", code, text)
	}
}

func get(t *testing.T, cfg *rest.Config, path string) (int, []byte) {
	t.Helper()
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, text
}
