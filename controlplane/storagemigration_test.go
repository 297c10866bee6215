// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const migrations = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"

// conditions are those of an object, one a line.
func conditions(o *unstructured.Unstructured) string {
	var out strings.Builder
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		c := c.(map[string]any)
		fmt.Fprintf(&out, "%s %s %s: %s\n", c["type"], c["status"], c["reason"], c["message"])
	}
	return out.String()
}

// migrate asks for the objects of a resource to be written again.
func (a *api) migrate(name, group, resource string) {
	a.tb.Helper()
	a.must("POST", migrations, fmt.Sprintf(`{apiVersion: storagemigration.k8s.io/v1, kind: StorageVersionMigration, metadata: {name: %s},
		spec: {resource: {group: %q, resource: %s}}}`, name, group, resource))
}

const migratedDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: cogs.example.com}, spec: {group: example.com,
	names: {kind: Cog, plural: cogs}, scope: Namespaced, versions: [
		{name: v1, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}},
		{name: v2, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

func TestStorageVersionMigrationWritesObjectsAgain(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	const crd, cogs = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cogs.example.com", "/apis/example.com/v2/namespaces/default/cogs"
	settle := func() {
		t.Helper()
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	api.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(migratedDefinition, true, false))
	old := map[string]string{}
	for i := range 150 { // more than one step asks for
		o := api.must("POST", cogs, fmt.Sprintf(`{apiVersion: example.com/v2, kind: Cog, metadata: {name: c%d}, size: %d}`, i, i))
		old[o.GetName()] = o.GetResourceVersion()
	}
	api.must("PATCH", crd, `{spec: {versions: [{name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}},
		{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	late := api.must("POST", cogs, `{apiVersion: example.com/v2, kind: Cog, metadata: {name: late}}`)
	settle()
	if stored, _, _ := unstructured.NestedStringSlice(api.must("GET", crd, "").Object, "status", "storedVersions"); strings.Join(stored, " ") != "v1 v2" {
		t.Fatalf("stored before: %v", stored)
	}

	api.migrate("cogs", "example.com", "cogs")
	api.migrate("again", "example.com", "cogs")
	settle()
	for name, before := range old {
		if now := api.must("GET", cogs+"/"+name, "").GetResourceVersion(); now == before {
			t.Fatalf("%s was not written again", name)
		}
	}
	if now := api.must("GET", cogs+"/late", "").GetResourceVersion(); now != late.GetResourceVersion() {
		t.Error("what was in the new version was written again")
	}
	definition := api.must("GET", crd, "")
	if stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions"); strings.Join(stored, " ") != "v2" {
		t.Errorf("stored after: %v", stored)
	}
	if got := conditions(definition); !strings.Contains(got, "StorageMigrating False MigrationSucceeded: The migration has succeeded and the stored versions have been updated\n") {
		t.Errorf("the definition says\n%s", got)
	}
	for _, name := range []string{"cogs", "again"} {
		const want = "Running False MigrationCompleted: Migration completed\nSucceeded True StorageVersionMigrationSucceeded: Migration completed\n"
		if got := conditions(api.must("GET", migrations+"/"+name, "")); got != want {
			t.Errorf("%s says\n%s", name, got)
		}
	}
}

func TestStorageVersionMigrationOfNothingFailsAfterAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane, api := newPlane(t)
		api.migrate("nothing", "example.com", "nothings")
		for range 2 {
			if _, err := plane.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := conditions(api.must("GET", migrations+"/nothing", "")); got != "Running True MigrationRunning: The migration is running\n" {
				t.Fatalf("at first it says\n%s", got)
			}
			time.Sleep(30 * time.Second)
		}
		time.Sleep(time.Second)
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		const want = "Running False MigrationCompleted: Migration completed\nFailed True StorageVersionMigrationFailed: resource does not exist in discovery\n"
		if got := conditions(api.must("GET", migrations+"/nothing", "")); got != want {
			t.Errorf("it says\n%s", got)
		}
	})
}
