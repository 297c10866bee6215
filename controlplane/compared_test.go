// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/custom"
	boats "github.com/steer-dev/steer/apiserver/custom/testdata/boats/v1"
	"github.com/steer-dev/steer/apiserver/delegated"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

// clocks is a kind that is computed when it is read.
type clocks struct{}

func (clocks) List(context.Context, *resource.Request, *internalversion.ListOptions) (*resource.List, error) {
	return &resource.List{Items: []resource.Object{&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "now", "namespace": "default"}}}}}, nil
}

// words answers for a subresource.
type words struct{}

func (words) Connect(_ context.Context, r *resource.Request, w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("words of " + r.Name)) // the client may be gone
}

// definitionOf is the definition of a kind in a group of its own.
func definitionOf(kind string) string {
	plural := strings.ToLower(kind) + "s"
	return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " + plural + "." + plural + ".example.com}, spec: {group: " + plural +
		".example.com, scope: Namespaced, names: {kind: " + kind + ", plural: " + plural + "}, versions: [{name: v1, served: true, storage: true, " +
		"schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}"
}

// besides serves Notes, Clocks and Boats behind a plane, and Papers by a definition in it.
func besides(t testing.TB) (*api, *httptest.Server) {
	t.Helper()
	address := ""
	plane, err := controlplane.New(controlplane.Options{
		Listen: "127.0.0.1:0", ManualControllers: true, Webhooks: webhookclient.Options{Resolve: func(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
			return webhookclient.Backend{Address: address}, true
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := delegated.New(delegated.Options{Config: plane.RESTConfig()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := storage.NewMemory(storage.MemoryOptions{})
	server, err := apiserver.New(apiserver.Options{Store: store, Authenticator: d, Authorizer: d.Authorizer(), Limits: apiserver.Limits{BodyBytes: 16 << 20, ObjectBytes: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []interface {
		Resource() (*resource.Resource, error)
	}{
		custom.Kind[*unstructured.Unstructured]{
			Definition: []byte(definitionOf("Note")), Subresources: []resource.Subresource{{Name: "words", Verbs: []string{"get"}, Backend: words{}}},
		},
		custom.Kind[*unstructured.Unstructured]{Definition: []byte(definitionOf("Clock")), Backend: clocks{}},
		custom.Kind[*boats.Boat]{Definition: []byte(definitionOf("Boat"))},
	} {
		r, err := k.Resource()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Install(r); err != nil {
			t.Fatal(err)
		}
	}
	behind := httptest.NewUnstartedServer(server.Handler())
	behind.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	behind.StartTLS()
	t.Cleanup(func() {
		_ = plane.Stop(context.Background()) // ends its watches of the server
		behind.Close()
		_ = server.Stop(context.Background())
		_ = store.Close()
	})
	address = behind.Listener.Addr().String()
	a := apiOf(t, plane.RESTConfig())
	for _, plural := range []string{"notes", "clocks", "boats"} {
		a.must("POST", apiServices, "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1."+plural+".example.com}, spec: {group: "+plural+
			".example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, service: {namespace: default, name: notes}, insecureSkipTLSVerify: true}}")
	}
	a.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definitionOf("Paper"))
	if _, err := plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a, behind
}

const (
	papers = "/apis/papers.example.com/v1/namespaces/default/papers"
	aBoats = "/apis/boats.example.com/v1/namespaces/default/boats"
	aNotes = "/apis/notes.example.com/v1/namespaces/default/notes"
)

// typeAt begins an object in JSON of the kind at a path.
func typeAt(path string) string {
	parts := strings.Split(path, "/") // "", apis, group, version, namespaces, namespace, plural
	kind := strings.ToUpper(parts[6][:1]) + strings.TrimSuffix(parts[6][1:], "s")
	return `{"apiVersion": "` + parts[2] + "/" + parts[3] + `", "kind": "` + kind + `", `
}

// TestDefinitionsAndServersDifferAsDocumented has one part for each line of the table of
// docs/custom-api-servers.md.
func TestDefinitionsAndServersDifferAsDocumented(t *testing.T) {
	t.Parallel()
	a, behind := besides(t)
	codes := func(t *testing.T, method, definition, server, body string, header map[string]string, wantDefinition, wantServer int) {
		t.Helper()
		header["Content-Type"] = "application/json"
		for path, want := range map[string]int{definition: wantDefinition, server: wantServer} {
			if code, text := a.send(method, path, strings.Replace(body, "{", typeAt(path), 1), header); code != want {
				t.Errorf("%s %s: %d %.200s, want %d", method, path, code, text, want)
			}
		}
	}
	lines := []struct {
		name string
		test func(t *testing.T)
	}{
		{"size", func(t *testing.T) {
			for bytes, refused := range map[int]int{2 << 20: 500, 4 << 20: 413} {
				big := fmt.Sprintf(`{"metadata": {"name": "big%d"}, "text": "%s"}`, bytes, strings.Repeat("x", bytes))
				codes(t, "POST", papers, aNotes, big, map[string]string{}, refused, 201)
			}
		}},
		{"subresources", func(t *testing.T) {
			codes(t, "POST", papers, aNotes, `{"metadata": {"name": "a"}}`, map[string]string{}, 201, 201)
			codes(t, "GET", papers+"/a/words", aNotes+"/a/words", "", map[string]string{}, 404, 200)
		}},
		{"storage", func(t *testing.T) {
			codes(t, "POST", papers, strings.ReplaceAll(aNotes, "notes", "clocks"), `{"metadata": {"name": "b"}}`, map[string]string{}, 201, 405)
			if got := a.names(strings.ReplaceAll(aNotes, "notes", "clocks")); !slices.Equal(got, []string{"now"}) {
				t.Errorf("the computed objects are %q", got)
			}
		}},
		{"protobuf", func(t *testing.T) {
			for _, path := range []string{papers, aBoats} {
				codes(t, "POST", path, path, `{"metadata": {"name": "p"}}`, map[string]string{}, 201, 201)
			}
			codes(t, "GET", papers+"/p", aBoats+"/p", "", map[string]string{"Accept": "application/vnd.kubernetes.protobuf"}, 406, 200)
		}},
		{"operation", func(t *testing.T) {
			behind.CloseClientConnections()
			behind.Listener.Close()
			codes(t, "GET", papers, aNotes, "", map[string]string{}, 200, 503)
		}},
	}
	for _, l := range lines { // the last one ends the server
		if !t.Run(l.name, l.test) { // in their order
			break
		}
	}
	page, err := os.ReadFile("../docs/custom-api-servers.md")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)## CRD or aggregated\?.*?\n\n(\|.*?)\n\n`).FindStringSubmatch(string(page))
	if table == nil {
		t.Fatal("the page has no table")
	}
	var documented, tested []string
	for _, line := range strings.Split(table[1], "\n")[2:] {
		documented = append(documented, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	for _, l := range lines {
		tested = append(tested, l.name)
	}
	if tested = append(tested, "latency"); !slices.Equal(documented, tested) {
		t.Errorf("the table has the lines %q, tested are %q, latency by BenchmarkDefinitionAndServer", documented, tested)
	}
}

// BenchmarkDefinitionAndServer compares reads of an object of a definition and of one that
// the plane passes on to another server.
func BenchmarkDefinitionAndServer(b *testing.B) {
	a, _ := besides(b)
	for name, collection := range map[string]string{"definition": papers, "server": aNotes} {
		if code, text := a.send("POST", collection, typeAt(collection)+`"metadata": {"name": "a"}}`, map[string]string{"Content-Type": "application/json"}); code != 201 {
			b.Fatalf("%d %s", code, text)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if code, _ := a.send("GET", collection+"/a", "", nil); code != 200 {
					b.Fatal(code)
				}
			}
		})
	}
}
