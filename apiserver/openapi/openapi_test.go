// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

const widgetSchema = `
type: object
description: A widget.
properties:
  spec:
    type: object
    description: What is wanted.
    required: [replicas]
    properties:
      replicas: {type: integer, format: int32, minimum: 0, default: 1}
      colour: {type: string, enum: [red, blue], nullable: true}
      tags: {type: array, items: {type: string}}
      when: {type: string, format: date-time}
      ratio: {type: number}
      flag: {type: boolean}
      obj: {type: object, x-kubernetes-preserve-unknown-fields: true}
      port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
      tmpl: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
    x-kubernetes-validations: [{rule: "self.replicas < 100"}]
  status:
    type: object
    properties:
      replicas: {type: integer}
      selector: {type: string}
      conditions: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type], items: {type: object, required: [type], properties: {type: {type: string}, status: {type: string}}}}
`

func resources(t testing.TB) []Resource {
	t.Helper()
	s := &spec.Schema{}
	raw, err := yaml.YAMLToJSON([]byte(widgetSchema))
	if err == nil {
		err = json.Unmarshal(raw, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	some := []string{"get", "patch", "update"}
	scale := Subresource{Name: "scale", Verbs: some, Kind: schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, Type: ScaleType()}
	return []Resource{
		{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", ListKind: "WidgetList", Namespaced: true, Verbs: all,
			Subresources: []Subresource{{Name: "status", Verbs: some}, scale}, Schema: s, Selectable: []string{"spec.colour"}},
		{Group: "example.com", Version: "v1beta1", Plural: "widgets", Kind: "Widget", ListKind: "WidgetList", Namespaced: true, Verbs: all},
		{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", ListKind: "DeploymentList", Namespaced: true, Verbs: all,
			Subresources: []Subresource{{Name: "status", Verbs: some}, scale}, Type: reflect.TypeFor[appsv1.Deployment]()},
	}
}

func fetch(t *testing.T, h http.Handler, path string, headers ...string) (*httptest.ResponseRecorder, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var out map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &out)
	return w, out
}

func recorded(t *testing.T, name string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// withoutDescriptions removes the descriptions of parameters, which testdata does not
// have, after checking that there are some.
func withoutDescriptions(t *testing.T, paths map[string]any) {
	t.Helper()
	strip := func(list any) {
		parameters, _ := list.([]any)
		for _, p := range parameters {
			if p.(map[string]any)["description"] == "" {
				t.Errorf("parameter %v has no description", p.(map[string]any)["name"])
			}
			delete(p.(map[string]any), "description")
		}
	}
	for _, item := range paths {
		for method, op := range item.(map[string]any) {
			if method == "parameters" {
				strip(op)
			} else {
				strip(op.(map[string]any)["parameters"])
			}
		}
	}
}

// TestCustomResourceDocument compares with the document of kube-apiserver for
// the same definition.
func TestCustomResourceDocument(t *testing.T) {
	t.Parallel()
	_, got := fetch(t, New(resources(t), Options{Version: "v1.37.0"}), "/openapi/v3/apis/example.com/v1")
	want := recorded(t, "widgets-v3.json")
	withoutDescriptions(t, got["paths"].(map[string]any))
	schemas := got["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range want["names"].([]any) {
		if schemas[name.(string)] == nil {
			t.Errorf("definition %v is missing", name)
		}
	}
	delete(want, "names")
	for name := range schemas {
		if !strings.HasPrefix(name, "com.example") {
			delete(schemas, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-kube-apiserver +ours):\n%s", diff)
	}
}

func TestBuiltInPaths(t *testing.T) {
	t.Parallel()
	_, doc := fetch(t, New(resources(t), Options{Version: "v1.37.0"}), "/openapi/v3/apis/apps/v1")
	got := doc["paths"].(map[string]any)
	withoutDescriptions(t, got)
	if diff := cmp.Diff(recorded(t, "deployments-v3.json"), got); diff != "" {
		t.Errorf("paths (-kube-apiserver +ours):\n%s", diff)
	}
}

func TestVersion2Definitions(t *testing.T) {
	t.Parallel()
	_, doc := fetch(t, New(resources(t), Options{Version: "v1.37.0"}), "/openapi/v2")
	definitions := doc["definitions"].(map[string]any)
	got := map[string]any{
		"widget":      definitions["com.example.v1.Widget"],
		"list":        definitions["com.example.v1.WidgetList"],
		"intorstring": definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"],
		"quantity":    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"],
		"spec":        definitions["io.k8s.api.apps.v1.DeploymentSpec"],
		"strategy":    definitions["io.k8s.api.apps.v1.RollingUpdateDeployment"],
	}
	want := recorded(t, "definitions-v2.json")
	for _, m := range []map[string]any{want, got} { // the doc comment differs from the description of the type
		delete(m["intorstring"].(map[string]any), "description")
		delete(m["quantity"].(map[string]any), "description")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-kube-apiserver +ours):\n%s", diff)
	}
}

// TestCustomKindsLeaveTheSchemasOfBuiltInKindsAlone: the group of one may spell the Go package
// of the other, backwards.
func TestCustomKindsLeaveTheSchemasOfBuiltInKindsAlone(t *testing.T) {
	t.Parallel()
	list := resources(t)
	for _, r := range list {
		if r.Type == nil {
			r.Group, r.Version, r.Kind, r.ListKind, r.Plural = "apps.api.k8s.io", "v1", "Deployment", "DeploymentList", "deployments"
			list = append(list, r)
			break
		}
	}
	_, doc := fetch(t, New(list, Options{Version: "v1.36.0"}), "/openapi/v2")
	definitions := doc["definitions"].(map[string]any)
	text := func(name string) string {
		raw, err := json.Marshal(definitions[name])
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	const builtIn = "io.k8s.api.apps.v1.Deployment"
	if got := text(builtIn); !strings.Contains(got, "io.k8s.api.apps.v1.DeploymentSpec") {
		t.Errorf("the schema of the built-in kind is %s", got)
	}
	if got := text(builtIn + "_v2"); !strings.Contains(got, "A widget.") {
		t.Errorf("the schema of the custom kind is %s", got)
	}
	if got := text(builtIn + "List_v2"); !strings.Contains(got, `"#/definitions/`+builtIn+`_v2"`) {
		t.Errorf("the schema of its list is %s", got)
	}
	raw, err := json.Marshal(doc["paths"].(map[string]any)["/apis/apps.api.k8s.io/v1/namespaces/{namespace}/deployments/{name}"])
	if err != nil || !strings.Contains(string(raw), `"#/definitions/`+builtIn+`_v2"`) {
		t.Errorf("its path is %s (%v)", raw, err)
	}
}

func TestIndexAndCaching(t *testing.T) {
	t.Parallel()
	d := New(resources(t), Options{Version: "v1.37.0"})
	_, index := fetch(t, d, "/openapi/v3")
	entry := index["paths"].(map[string]any)["apis/example.com/v1"].(map[string]any)
	url := entry["serverRelativeURL"].(string)
	w, _ := fetch(t, d, url)
	if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "public, immutable" || w.Header().Get("Expires") == "" {
		t.Errorf("%d %v, want an immutable document", w.Code, w.Header())
	}
	w, _ = fetch(t, d, "/openapi/v3/apis/example.com/v1?hash=AB")
	if w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != url {
		t.Errorf("%d to %q, want 301 to %q", w.Code, w.Header().Get("Location"), url)
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/example.com/v1"} {
		w, _ = fetch(t, d, path)
		again, _ := fetch(t, d, path, "If-None-Match", w.Header().Get("ETag"))
		if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: %d with %d bytes, want 304 without", path, again.Code, again.Body.Len())
		}
		if w, _ = fetch(t, d, path, "Accept", "text/html"); w.Code != http.StatusNotAcceptable {
			t.Errorf("%s: %d, want 406", path, w.Code)
		}
	}
	changed := resources(t)
	changed[0].Schema.Description = "Another widget."
	other := New(changed, Options{Version: "v1.37.0"})
	if a, b := d.versions["apis/example.com/v1"].fingerprint(), other.versions["apis/example.com/v1"].fingerprint(); a == b {
		t.Error("another schema has the same fingerprint")
	}
	if a, b := d.versions["apis/apps/v1"].fingerprint(), other.versions["apis/apps/v1"].fingerprint(); a != b {
		t.Error("the same types have another fingerprint")
	}
	if w, _ = fetch(t, d, "/openapi/v3/apis/nope/v1"); w.Code != http.StatusNotFound {
		t.Errorf("%d, want 404", w.Code)
	}
}

// TestClientsReadTheDocuments parses the protobuf forms with client-go.
func TestClientsReadTheDocuments(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(New(resources(t), Options{Version: "v1.37.0"}))
	t.Cleanup(server.Close)
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
	doc, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	if named := find(doc, "com.example.v1.Widget"); named == nil {
		t.Error("the widget is not in the version 2 document")
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, media := range []string{mediaJSON, "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"} {
		raw, err := paths["apis/apps/v1"].Schema(media)
		if err != nil || len(raw) < 10_000 {
			t.Errorf("%s: %d bytes: %v", media, len(raw), err)
		}
	}
}

func find(doc *openapi_v2.Document, name string) *openapi_v2.Schema {
	for _, d := range doc.GetDefinitions().GetAdditionalProperties() {
		if d.GetName() == name {
			return d.GetValue()
		}
	}
	return nil
}

// BenchmarkNew measures a new custom resource before any document is requested.
func BenchmarkNew(b *testing.B) {
	list := resources(b)
	for b.Loop() {
		New(list, Options{})
	}
}

func BenchmarkDocument(b *testing.B) {
	list := resources(b)
	for b.Loop() {
		d := New(list, Options{})
		d.versions["apis/example.com/v1"].document()
	}
}
