// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/scaffold/project"
)

func TestManifestsOfTheProjectComeToDev(t *testing.T) {
	t.Parallel()
	plane := startedPlane(t)
	c, err := client.New(plane.RESTConfig(), client.Options{FieldOwner: "steer-dev"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, filepath.FromSlash(project.ExtrasDir), "own.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	o := &own{loop: &loop{Options: Options{Dir: dir, Errs: &printed}, project: &project.Project{Name: "shop"}, client: c, applied: map[string]string{}}}
	before := o.sources()
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dashboard}\n---\napiVersion: example.com/v1\nkind: Rule\nmetadata: {name: slow}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o.sources().sum == before.sum {
		t.Error("a manifest that is saved is not seen")
	}
	for range 2 { // the second time nothing has changed
		if err := o.extras(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	dashboard := client.NewMetadata(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop-system", Name: "dashboard"}, dashboard); err != nil {
		t.Errorf("it is not in the namespace of the operator: %v", err)
	}
	if want := "Rule slow is left out: the control plane has no kind Rule.example.com"; strings.Count(printed.String(), want) != 1 {
		t.Errorf("printed %q, want %q once", printed.String(), want)
	}
}

func TestRolesForPeopleComeToDevWithTheKind(t *testing.T) {
	t.Parallel()
	plane := startedPlane(t)
	c, err := client.New(plane.RESTConfig(), client.Options{FieldOwner: "steer-dev"})
	if err != nil {
		t.Fatal(err)
	}
	o := &own{loop: &loop{Options: Options{Dir: "../../../../examples/tenants"}, project: &project.Project{Name: "tenants"}, client: c, applied: map[string]string{}}}
	if err := o.define(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tenants-database-admin-role", "tenants-database-editor-role", "tenants-tenant-viewer-role"} {
		role := client.NewMetadata(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"})
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil {
			t.Error(err)
		}
	}
}
