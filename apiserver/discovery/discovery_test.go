// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

var (
	all       = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	partial   = []string{"get", "patch", "update"}
	resources = []Resource{
		{Group: "example.com", Version: "v1beta1", Plural: "widgets", Singular: "widget", Kind: "Widget", Namespaced: true, Verbs: all, Stored: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, ShortNames: []string{"wd"}, Categories: []string{"all"}},
		{Group: "example.com", Version: "v1", Plural: "widgets", Singular: "widget", Kind: "Widget", Namespaced: true, Verbs: all, Stored: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, ShortNames: []string{"wd"}, Categories: []string{"all"},
			Subresources: []Subresource{{Name: "status", Verbs: partial}, {Name: "scale", Kind: schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, Verbs: partial}}},
		{Group: "another.example.com", Version: "v1alpha1", Plural: "things", Singular: "thing", Kind: "Thing", Verbs: []string{"get"}},
		{Group: "apps", Version: "v1", Plural: "deployments", Singular: "deployment", Kind: "Deployment", Namespaced: true, Verbs: all, Stored: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
		{Version: "v1", Plural: "configmaps", Singular: "configmap", Kind: "ConfigMap", Namespaced: true, Verbs: all, Stored: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, ShortNames: []string{"cm"}},
		{Version: "v1", Plural: "bindings", Singular: "binding", Kind: "Binding", Namespaced: true, Verbs: []string{"create"}},
	}
)

// get fetches a document and decodes it as JSON.
func get(t *testing.T, d *Documents, path, accept string) (*httptest.ResponseRecorder, any) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	var out any
	_ = json.Unmarshal(w.Body.Bytes(), &out)
	return w, out
}

// TestLegacyDocuments compares with the answers of kube-apiserver.
func TestLegacyDocuments(t *testing.T) {
	t.Parallel()
	d := New(resources, Options{ServerAddress: "192.0.2.1:6443"})
	for path, want := range map[string]string{
		"/api":               `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"192.0.2.1:6443"}]}`,
		"/apis":              `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"},{"groupVersion":"example.com/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}},{"name":"another.example.com","versions":[{"groupVersion":"another.example.com/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"another.example.com/v1alpha1","version":"v1alpha1"}}]}`,
		"/apis/example.com/": `{"kind":"APIGroup","apiVersion":"v1","name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"},{"groupVersion":"example.com/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}`,
		"/apis/example.com/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[
			{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["wd"],"categories":["all"],"storageVersionHash":"gIwvi5rymmg="},
			{"name":"widgets/status","singularName":"","namespaced":true,"kind":"Widget","verbs":["get","patch","update"]},
			{"name":"widgets/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]},
			{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["cm"],"storageVersionHash":"qFsyl6wFWjQ="}]}`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w, got := get(t, d, path, "application/json")
			var wanted any
			if err := json.Unmarshal([]byte(want), &wanted); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wanted, got); diff != "" || w.Code != http.StatusOK {
				t.Errorf("status %d, document (-want +got):\n%s", w.Code, diff)
			}
		})
	}
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	t.Parallel()
	d := New(resources, Options{})
	for _, path := range []string{"/api/v2", "/apis/nope", "/apis/example.com/v9", "/apis//v1", "/apis/a/b/c", "/other"} {
		if w, _ := get(t, d, path, ""); w.Code != http.StatusNotFound || w.Body.String() != "404 page not found\n" {
			t.Errorf("%s: %d %q, want a plain 404", path, w.Code, w.Body)
		}
	}
}

func TestAggregatedDocumentIsCacheable(t *testing.T) {
	t.Parallel()
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	d := New(resources, Options{Elsewhere: []Elsewhere{{GroupVersion: schema.GroupVersion{Group: "metrics.example.com", Version: "v1"}, GroupPriority: 20000, VersionPriority: 1, Stale: true}}})
	w, got := get(t, d, "/apis", accept)
	if got, want := w.Header().Get("Content-Type"), "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"; got != want {
		t.Errorf("content type %q, want %q", got, want)
	}
	etag := w.Header().Get("ETag")
	if etag == "" || w.Header().Get("Vary") != "Accept" {
		t.Errorf("headers %v, want ETag and Vary", w.Header())
	}
	first := got.(map[string]any)["items"].([]any)[0].(map[string]any)
	if freshness := first["versions"].([]any)[0].(map[string]any)["freshness"]; freshness != "Stale" {
		t.Errorf("freshness %v, want Stale", freshness)
	}

	r := httptest.NewRequest(http.MethodGet, "/apis", nil)
	r.Header.Set("Accept", accept)
	r.Header.Set("If-None-Match", etag)
	again := httptest.NewRecorder()
	d.ServeHTTP(again, r)
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("status %d with %d bytes, want 304 without body", again.Code, again.Body.Len())
	}
	if w, _ := get(t, New(resources[:3], Options{}), "/apis", accept); w.Header().Get("ETag") == etag {
		t.Error("the ETag of another document is the same")
	}
}

func TestNegotiation(t *testing.T) {
	t.Parallel()
	d := New(resources, Options{})
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/yaml": "application/yaml",
		"application/vnd.kubernetes.protobuf":                                                        "application/vnd.kubernetes.protobuf",
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json": "application/json",
		"application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList":    "application/vnd.kubernetes.protobuf" + aggregatedType,
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer":        "application/json" + aggregatedType,
	} {
		if w, _ := get(t, d, "/apis", accept); w.Code != http.StatusOK || w.Header().Get("Content-Type") != want {
			t.Errorf("%q: %d %q, want 200 %q", accept, w.Code, w.Header().Get("Content-Type"), want)
		}
	}
	for _, accept := range []string{"text/html", "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList"} {
		if w, _ := get(t, d, "/apis", accept); w.Code != http.StatusNotAcceptable {
			t.Errorf("%q: %d, want 406", accept, w.Code)
		}
	}
}

func TestProtobufForm(t *testing.T) {
	t.Parallel()
	w, _ := get(t, New(resources, Options{}), "/apis", "application/vnd.kubernetes.protobuf"+aggregatedType)
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(w.Body.Bytes()[4:]); err != nil || envelope.Kind != "APIGroupDiscoveryList" {
		t.Fatalf("envelope %v: %v", envelope.TypeMeta, err)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := list.Unmarshal(envelope.Raw); err != nil || len(list.Items) != 3 {
		t.Errorf("list of %d groups: %v", len(list.Items), err)
	}
}

// TestDiscoveryClient reads both forms with the client of client-go.
func TestDiscoveryClient(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(New(resources, Options{}))
	t.Cleanup(server.Close)
	for _, legacy := range []bool{false, true} {
		client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
		client.UseLegacyDiscovery = legacy
		groups, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				got[list.GroupVersion] = append(got[list.GroupVersion], r.Name+" "+r.Kind)
			}
		}
		want := map[string][]string{
			"v1": {"bindings Binding", "configmaps ConfigMap"}, "apps/v1": {"deployments Deployment"},
			"another.example.com/v1alpha1": {"things Thing"}, "example.com/v1beta1": {"widgets Widget"},
			"example.com/v1": {"widgets Widget", "widgets/status Widget", "widgets/scale Scale"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("legacy %v: resources (-want +got):\n%s", legacy, diff)
		}
		at := slices.IndexFunc(groups, func(g *metav1.APIGroup) bool { return g.Name == "example.com" })
		if preferred := groups[at].PreferredVersion; preferred != (metav1.GroupVersionForDiscovery{GroupVersion: "example.com/v1", Version: "v1"}) {
			t.Errorf("legacy %v: preferred version %v", legacy, preferred)
		}
	}
}
