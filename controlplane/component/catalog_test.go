// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/discovery"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// serving returns a server of resources, and its catalog.
func serving(t *testing.T, resources ...*resource.Resource) (*apiserver.Server, step.Catalog) {
	t.Helper()
	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	if err := server.Install(resources...); err != nil {
		t.Fatal(err)
	}
	return server, component.NewCatalog(server)
}

// inVersions is a description whose objects are stored in the last of some versions; those whose
// names begin with "-" are not served.
func inVersions(group, plural, bucket string, names ...string) *resource.Resource {
	r := describe(group, plural)
	own := r.Versions[0]
	r.Versions, r.Storage.Bucket = nil, bucket
	for _, name := range names {
		v := own
		if v.Name = name; name[0] == '-' {
			v.Name, v.NotServed = name[1:], true
		}
		r.Versions, r.Storage.Version = append(r.Versions, v), v.Name
	}
	return r
}

func listed(c step.Catalog) []string {
	var out []string
	for r := range c.Resources() {
		out = append(out, fmt.Sprint(r.Bucket, " ", r.Group, "/", r.Version, " ", r.Plural))
	}
	return out
}

func TestCatalogHasEachBucketOnce(t *testing.T) {
	t.Parallel()
	remote := inVersions("example.com", "remotes", "f", "v1", "v2")
	remote.RemoteConversion = true
	_, catalog := serving(t,
		inVersions("z.com", "gears", "b", "v1"), inVersions("example.com", "gears", "a", "-v1", "v2", "v3"), inVersions("example.com", "wheels", "c", "-v1"),
		inVersions("a.com", "gears", "b", "v1"), remote,
	)
	want := []string{"a example.com/v2 gears", "b a.com/v1 gears", "f example.com/v2 remotes"}
	if diff := cmp.Diff(want, listed(catalog)); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	for kind, want := range map[[2]string]bool{
		{"example.com/v1", "gears"}: false, {"example.com/v2", "gears"}: true, {"example.com/v3", "gears"}: true, {"z.com/v1", "gears"}: true,
		{"example.com/v1", "remotes"}: true,
	} {
		if r, ok := catalog.Kind(kind[0], kind[1]); ok != want || ok && r.Group+"/"+r.Version != kind[0] {
			t.Errorf("%v is %+v, %v", kind, r, ok)
		}
	}
	if _, ok := catalog.Bucket("c"); ok {
		t.Error("a resource without served versions is in the catalog")
	}
}

func TestCatalogHasWhatOtherServersServe(t *testing.T) {
	t.Parallel()
	server, catalog := serving(t, inVersions("example.com", "gears", "a", "v1", "v2"))
	before := catalog.Generation()
	delegated := func(version string, priority int32, stale bool, resources ...apidiscoveryv2.APIResourceDiscovery) apiserver.Delegated {
		return apiserver.Delegated{
			Elsewhere: discovery.Elsewhere{GroupVersion: schema.GroupVersion{Group: "example.com", Version: version}, GroupPriority: 1, VersionPriority: priority, Resources: resources, Stale: stale},
			Handler:   http.NotFoundHandler(),
		}
	}
	of := func(name, kind string, scope apidiscoveryv2.ResourceScope, verbs ...string) apidiscoveryv2.APIResourceDiscovery {
		return apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: scope, Verbs: verbs, ResponseKind: &metav1.GroupVersionKind{Kind: kind}}
	}
	server.Delegate(
		delegated("v3", 1, false, of("wings", "Wing", apidiscoveryv2.ScopeCluster, "get"), of("tails", "Tail", apidiscoveryv2.ScopeNamespace)),
		delegated("v1", 2, false, of("wings", "Wing", apidiscoveryv2.ScopeNamespace, "list"), of("wings/exec", "Exec", ""), apidiscoveryv2.APIResourceDiscovery{Resource: "kindless"}),
		delegated("v4", 3, true, of("old", "Old", "")),
	)
	if catalog.Generation() == before {
		t.Error("the generation is as before")
	}
	if diff := cmp.Diff([]string{"a example.com/v2 gears"}, listed(catalog)); diff != "" {
		t.Errorf("its own resources (-want +got):\n%s", diff)
	}
	e := catalog.Elsewhere()
	var got []string
	for _, r := range e.Resources {
		got = append(got, fmt.Sprint(r.Bucket == step.ElsewhereBucket("example.com", r.Plural), " ", r.Version, " ", r.Plural, " ", r.Kind, " ", r.Namespaced, " ", r.Verbs))
	}
	if diff := cmp.Diff([]string{"true v1 wings Wing true [list]", "true v3 tails Tail true []"}, got); diff != "" {
		t.Errorf("resources of others (-want +got):\n%s", diff)
	}
	kinds := map[schema.GroupVersionKind]int{
		{Group: "example.com", Version: "v1", Kind: "Wing"}: 0, {Group: "example.com", Version: "v3", Kind: "Wing"}: 0, {Group: "example.com", Version: "v3", Kind: "Tail"}: 1,
	}
	if diff := cmp.Diff(kinds, e.Kinds); diff != "" {
		t.Errorf("kinds of others (-want +got):\n%s", diff)
	}
	if want := []schema.GroupVersion{{Group: "example.com", Version: "v4"}}; !slices.Equal(e.Stale, want) {
		t.Errorf("stale are %v", e.Stale)
	}
}
