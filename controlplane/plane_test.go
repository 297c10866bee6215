// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest/teststore"
)

// api calls a plane as plainly as it gets.
type api struct {
	tb     testing.TB
	host   string
	client *http.Client
}

func apiOf(tb testing.TB, config *rest.Config) *api {
	tb.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		tb.Fatal(err)
	}
	// Before the plane stops: a server that is shut down leaves the clients of HTTP/2 a second to
	// close their connections.
	tb.Cleanup(func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	return &api{tb: tb, host: config.Host, client: client}
}

// newPlane returns a plane in memory whose controllers act when told to.
func newPlane(tb testing.TB) (*controlplane.Plane, *api) {
	tb.Helper()
	return planeOf(tb, controlplane.Options{ManualControllers: true})
}

// planeOf returns a plane with options, which is stopped at the end of the test.
func planeOf(tb testing.TB, o controlplane.Options) (*controlplane.Plane, *api) {
	tb.Helper()
	if o.Store == nil && o.DataDir == "" {
		o.Store = teststore.New(tb)
	}
	plane, err := controlplane.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return plane, apiOf(tb, plane.RESTConfig())
}

// open sends a request and returns the answer as it comes. A body is YAML;
// PATCH merges.
func (a *api) open(ctx context.Context, method, path, body string) *http.Response {
	a.tb.Helper()
	contentType := "application/yaml"
	if method == http.MethodPatch {
		contentType = "application/merge-patch+json"
		converted, err := yaml.YAMLToJSON([]byte(body))
		if err != nil {
			a.tb.Fatal(err)
		}
		body = string(converted)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.host+path, strings.NewReader(body))
	if err != nil {
		a.tb.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := a.client.Do(request)
	if err != nil {
		a.tb.Fatal(err)
	}
	return response
}

// do sends a request and returns the whole answer.
func (a *api) do(method, path, body string) (int, []byte) {
	a.tb.Helper()
	response := a.open(a.tb.Context(), method, path, body)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		a.tb.Fatal(err)
	}
	return response.StatusCode, answer
}

// send sends a request with headers and returns the answer.
func (a *api) send(method, path, body string, header map[string]string) (int, []byte) {
	a.tb.Helper()
	request, err := http.NewRequestWithContext(a.tb.Context(), method, a.host+path, strings.NewReader(body))
	if err != nil {
		a.tb.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := a.client.Do(request)
	if err != nil {
		a.tb.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.tb.Fatal(err)
	}
	return response.StatusCode, text
}

// must sends a request that has to succeed and returns the object in the answer.
func (a *api) must(method, path, body string) *unstructured.Unstructured {
	a.tb.Helper()
	status, answer := a.do(method, path, body)
	if status >= 300 {
		a.tb.Fatalf("%s %s: %d: %s", method, path, status, answer)
	}
	out := map[string]any{}
	if err := json.Unmarshal(answer, &out); err != nil {
		a.tb.Fatalf("%s %s: %v: %s", method, path, err, answer)
	}
	return &unstructured.Unstructured{Object: out}
}

// refused sends a request that has to fail and returns status, reason and
// message in one line.
func (a *api) refused(method, path, body string) string {
	a.tb.Helper()
	code, answer := a.do(method, path, body)
	if code < 300 {
		a.tb.Fatalf("%s %s succeeded: %s", method, path, answer)
	}
	var status struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(answer, &status); err != nil {
		return fmt.Sprintf("%d %s", code, answer)
	}
	return fmt.Sprintf("%d %s: %s", code, status.Reason, status.Message)
}

// names returns the names in a list, without what every namespace has.
func (a *api) names(path string) []string {
	a.tb.Helper()
	list := a.must(http.MethodGet, path, "")
	var out []string
	items, _, _ := unstructured.NestedSlice(list.Object, "items")
	for _, item := range items {
		if name, _, _ := unstructured.NestedString(item.(map[string]any), "metadata", "name"); name != "kube-root-ca.crt" {
			out = append(out, name)
		}
	}
	return out
}

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	cronTabs    = "/apis/stable.example.com/v1/namespaces/default/crontabs"
	configMaps  = "/api/v1/namespaces/default/configmaps"
)

// cronTabCRD is a small definition; kind and short name can be chosen.
func cronTabCRD(plural, kind, short string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: %[1]s, kind: %[2]s, shortNames: [%[3]s]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "self.replicas < 100"}]
            properties:
              cronSpec: {type: string}
              replicas: {type: integer, default: 1}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, plural, kind, short)
}

func cronTab(name string) string {
	return "{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: " + name + "}, spec: {cronSpec: x}}"
}

func configMap(name string, metadata ...string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {" + strings.Join(append([]string{"name: " + name}, metadata...), ", ") + "}}"
}

func ownedBy(o *unstructured.Unstructured, block bool) string {
	return fmt.Sprintf("ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, blockOwnerDeletion: %v}]", o.GetAPIVersion(), o.GetKind(), o.GetName(), o.GetUID(), block)
}

func settle(t *testing.T, plane *controlplane.Plane) int {
	t.Helper()
	n, err := plane.Settle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestBootNamespacesAreThere(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	equal(t, "namespaces", []string{"default", "kube-node-lease", "kube-public", "kube-system"}, api.names("/api/v1/namespaces"))
}

func TestDefinitionIsServedWhenItsCreationReturns(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	created := api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	accepted, _, _ := unstructured.NestedString(created.Object, "status", "acceptedNames", "listKind")
	equal(t, "accepted list kind", "CronTabList", accepted)

	resources := api.must("GET", "/apis/stable.example.com/v1", "")
	found, _, _ := unstructured.NestedSlice(resources.Object, "resources")
	equal(t, "resources in discovery", 2, len(found))
	if _, doc := api.do("GET", "/openapi/v3/apis/stable.example.com/v1", ""); !strings.Contains(string(doc), "com.example.stable.v1.CronTab") {
		t.Errorf("OpenAPI does not describe the kind: %.200s", doc)
	}

	object := api.must("POST", cronTabs, cronTab("a"))
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	equal(t, "defaulted replicas", int64(1), replicas)
	equal(t, "names", []string{"a"}, api.names(cronTabs))
	want := `422 Invalid: CronTab.stable.example.com "a" is invalid: spec: Invalid value: failed rule: self.replicas < 100`
	equal(t, "broken rule", want, api.refused("PATCH", cronTabs+"/a", "spec: {replicas: 100}"))
}

func TestDefinitionDeletionDeletesItsObjects(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	crd := definitions + "/crontabs.stable.example.com"
	api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	api.must("POST", cronTabs, cronTab("a"))
	api.must("POST", cronTabs, "{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: b, finalizers: [example.com/hold]}}")
	api.must("DELETE", crd, "")
	want := `403 Forbidden: crontabs.stable.example.com "c" is forbidden: create not allowed while custom resource definition is terminating`
	equal(t, "creation meanwhile", want, api.refused("POST", cronTabs, cronTab("c")))
	settle(t, plane)
	equal(t, "objects that are held", []string{"b"}, api.names(cronTabs))
	api.must("PATCH", cronTabs+"/b", "metadata: {finalizers: null}")
	settle(t, plane)
	if code, answer := api.do("GET", cronTabs, ""); code != http.StatusNotFound {
		t.Errorf("the resource is still served: %d %s", code, answer)
	}
	if code, answer := api.do("GET", crd, ""); code != http.StatusNotFound {
		t.Errorf("the definition is still there: %d %s", code, answer)
	}
	api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	equal(t, "objects of a new definition of that name", []string(nil), api.names(cronTabs))
}

func TestDefinitionTakesNamesThatAreReleased(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	api.must("POST", definitions, cronTabCRD("timetables", "TimeTable", "ct"))
	const timeTables = "/apis/stable.example.com/v1/timetables"
	if code, _ := api.do("GET", timeTables, ""); code != http.StatusNotFound {
		t.Fatalf("a definition without its names is served: %d", code)
	}
	api.must("DELETE", definitions+"/crontabs.stable.example.com", "")
	settle(t, plane)
	equal(t, "objects", []string(nil), api.names(timeTables))
}

func TestCollectorDeletesDependentsOfOwners(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy string
		while  []string // what is there before the collector acts
		after  []string
	}{
		{"Background", []string{"child", "grandchild"}, nil},
		{"Foreground", []string{"child", "grandchild", "owner"}, nil},
		{"Orphan", []string{"child", "grandchild", "owner"}, []string{"child", "grandchild"}},
	} {
		t.Run(test.policy, func(t *testing.T) {
			t.Parallel()
			plane, api := newPlane(t)
			owner := api.must("POST", configMaps, configMap("owner"))
			child := api.must("POST", configMaps, configMap("child", ownedBy(owner, true)))
			api.must("POST", configMaps, configMap("grandchild", ownedBy(child, true)))
			equal(t, "requests while all is well", 0, settle(t, plane))
			api.must("DELETE", configMaps+"/owner?propagationPolicy="+test.policy, "")
			equal(t, "before the collector acts", test.while, api.names(configMaps))
			settle(t, plane)
			equal(t, "after the collector acted", test.after, api.names(configMaps))
		})
	}
}

func TestCollectorActsUnderItsOwnName(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	owner := api.must("POST", configMaps, configMap("owner"))
	api.must("POST", configMaps, configMap("child", ownedBy(owner, true)))
	api.must("DELETE", configMaps+"/owner?propagationPolicy=Orphan", "")
	settle(t, plane)
	child := api.must("GET", configMaps+"/child", "")
	if refs := child.GetOwnerReferences(); len(refs) != 0 {
		t.Errorf("the child still has owners: %v", refs)
	}
}

func TestNamespaceDeletionDeletesItsContent(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	api.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: doomed}}")
	inside := strings.Replace(cronTabs, "default", "doomed", 1)
	api.must("POST", inside, cronTab("a"))
	api.must("POST", cronTabs, cronTab("elsewhere"))
	api.must("POST", "/api/v1/namespaces/doomed/configmaps", configMap("held", "finalizers: [example.com/hold]"))
	deleted := api.must("DELETE", "/api/v1/namespaces/doomed", "")
	phase, _, _ := unstructured.NestedString(deleted.Object, "status", "phase")
	equal(t, "phase", "Terminating", phase)
	want := `403 Forbidden: crontabs.stable.example.com "b" is forbidden: unable to create new content in namespace doomed because it is being terminated`
	equal(t, "creation meanwhile", want, api.refused("POST", inside, cronTab("b")))
	settle(t, plane)
	equal(t, "custom resources", []string(nil), api.names(inside))
	equal(t, "namespaces", []string{"default", "doomed", "kube-node-lease", "kube-public", "kube-system"}, api.names("/api/v1/namespaces"))
	api.must("PATCH", "/api/v1/namespaces/doomed/configmaps/held", "metadata: {finalizers: null}")
	settle(t, plane)
	equal(t, "namespaces", []string{"default", "kube-node-lease", "kube-public", "kube-system"}, api.names("/api/v1/namespaces"))
	equal(t, "custom resources elsewhere", []string{"elsewhere"}, api.names(cronTabs))
}

func TestNamespaceLifecycleRefusesCreations(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	equal(t, "creation in a missing namespace", `404 NotFound: namespaces "missing" not found`,
		api.refused("POST", "/api/v1/namespaces/missing/configmaps", configMap("x")))
	for _, name := range []string{"default", "kube-system", "kube-public"} {
		equal(t, "deletion of "+name, fmt.Sprintf(`403 Forbidden: namespaces %q is forbidden: this namespace may not be deleted`, name),
			api.refused("DELETE", "/api/v1/namespaces/"+name, ""))
	}
}

func TestForksAreIndependent(t *testing.T) {
	t.Parallel()
	plane, api := planeOf(t, controlplane.Options{ManualControllers: true, Store: storage.NewMemory(storage.MemoryOptions{})})
	api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	api.must("POST", cronTabs, cronTab("both"))
	fork, err := plane.Fork()
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Stop(context.Background())
	forked := apiOf(t, fork.RESTConfig())
	api.must("POST", cronTabs, cronTab("here"))
	forked.must("POST", cronTabs, cronTab("there"))
	forked.must("DELETE", cronTabs+"/both", "")
	equal(t, "names here", []string{"both", "here"}, api.names(cronTabs))
	equal(t, "names there", []string{"there"}, forked.names(cronTabs))
	forked.must("DELETE", definitions+"/crontabs.stable.example.com", "")
	settle(t, fork)
	equal(t, "names here after the definition has gone there", []string{"both", "here"}, api.names(cronTabs))
}

func TestBuiltInControllersRunBetweenStartAndStop(t *testing.T) {
	t.Parallel()
	plane, err := controlplane.New(controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := plane.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := plane.Settle(t.Context()); !errors.Is(err, controlplane.ErrControllersRun) {
		t.Errorf("settle while the controllers run: %v", err)
	}
	api := apiOf(t, plane.RESTConfig())
	owner := api.must("POST", configMaps, configMap("owner"))
	api.must("POST", configMaps, configMap("child", ownedBy(owner, true)))
	watch := api.open(t.Context(), "GET", configMaps+"?watch=true", "")
	defer watch.Body.Close()
	api.must("DELETE", configMaps+"/owner", "")
	for lines := bufio.NewScanner(watch.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, `{"type":"DELETED"`) && strings.Contains(line, `"name":"child"`) {
			break
		}
	}
	equal(t, "names", []string(nil), api.names(configMaps))
	for range 2 {
		if err := plane.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := plane.Start(t.Context()); !errors.Is(err, controlplane.ErrStopped) {
		t.Errorf("start after stop: %v", err)
	}
}
