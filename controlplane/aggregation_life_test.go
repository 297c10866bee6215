// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/serviceaddress"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

const (
	noteService = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.example.com}\n" +
		"spec: {group: example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, service: {namespace: default, name: notes}, insecureSkipTLSVerify: true}\n"
	notesOf = "/apis/example.com/v1/namespaces/"
)

// withNotes serves a plane, whose controllers run, with a server of notes behind it.
func withNotes(t *testing.T, definition string) *api {
	t.Helper()
	address := ""
	plane, a := listening(t, controlplane.Options{Webhooks: webhookclient.Options{Resolve: func(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
		return webhookclient.Backend{Address: address}, true
	}}})
	server := httptest.NewUnstartedServer(noteServer(t, plane, definition))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() {
		_ = plane.Stop(context.Background()) // ends its watches of the server; it is stopped again, with the same result
		server.Close()
	})
	address = server.Listener.Addr().String()
	a.must("POST", apiServices, noteService)
	if _, err := plane.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// until reads the events of a watch until one satisfies a condition.
func (a *api) until(t *testing.T, path string, done func(event string, o *unstructured.Unstructured) bool) {
	t.Helper()
	response := a.open(t.Context(), "GET", path, "")
	defer response.Body.Close()
	events := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   string
			Object *unstructured.Unstructured
		}
		if err := events.Decode(&event); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if done(event.Type, event.Object) {
			return
		}
	}
}

// untilGone waits for the end of an object.
func (a *api) untilGone(t *testing.T, collection, name string) {
	t.Helper()
	list := a.must("GET", collection+"?fieldSelector=metadata.name%3D"+name, "")
	items, _, _ := unstructured.NestedSlice(list.Object, "items")
	if len(items) == 0 {
		return
	}
	revision, _, _ := unstructured.NestedString(list.Object, "metadata", "resourceVersion")
	a.until(t, collection+"?watch=1&fieldSelector=metadata.name%3D"+name+"&resourceVersion="+revision, func(event string, _ *unstructured.Unstructured) bool {
		return event == "DELETED"
	})
}

// untilCondition waits for a condition of the namespace doomed that is True, and returns its
// reason and message.
func (a *api) untilCondition(t *testing.T, condition string) (said string) {
	t.Helper()
	a.until(t, "/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Ddoomed", func(_ string, o *unstructured.Unstructured) bool {
		all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range all {
			if c, _ := c.(map[string]any); c["type"] == condition && c["status"] == "True" {
				said = c["reason"].(string) + ": " + c["message"].(string)
			}
		}
		return said != ""
	})
	return said
}

func (a *api) note(namespace, metadata string) *unstructured.Unstructured {
	return a.must("POST", notesOf+namespace+"/notes", "apiVersion: example.com/v1\nkind: Note\nmetadata: "+metadata+"\n")
}

func TestNamespaceDeletionReachesOtherServers(t *testing.T) {
	t.Parallel()
	a := withNotes(t, noteDefinition)
	a.must("POST", "/api/v1/namespaces", "apiVersion: v1\nkind: Namespace\nmetadata: {name: doomed}\n")
	a.note("doomed", "{name: plain}")
	a.note("doomed", "{name: held, finalizers: [example.com/hold]}")
	a.note("default", "{name: elsewhere}")
	a.must("DELETE", "/api/v1/namespaces/doomed", "")
	equal(t, "the condition", "SomeResourcesRemain: Some resources are remaining: notes.example.com has 1 resource instances",
		a.untilCondition(t, "NamespaceContentRemaining"))
	equal(t, "the condition", "SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
		a.untilCondition(t, "NamespaceFinalizersRemaining"))
	if got := a.names(notesOf + "doomed/notes"); len(got) != 1 || got[0] != "held" {
		t.Errorf("there are %q", got)
	}
	a.must("PATCH", notesOf+"doomed/notes/held", "metadata: {finalizers: null}")
	a.untilGone(t, "/api/v1/namespaces", "doomed")
	if got := a.names(notesOf + "default/notes"); len(got) != 1 {
		t.Errorf("in another namespace there are %q", got)
	}
}

// TestNamespaceWaitsForServersThatDoNotAnswer, because it is not known what they have in it.
func TestNamespaceWaitsForServersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	s := newWingServer(t, nil)
	_, plane, a := aggregating(t, s, nil)
	s.Close()
	a.must("PATCH", apiServices+"/v1.wings.example.com", "spec: {versionPriority: 11}")
	a.must("POST", "/api/v1/namespaces", "apiVersion: v1\nkind: Namespace\nmetadata: {name: doomed}\n")
	a.must("POST", "/api/v1/namespaces/doomed/configmaps", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	settle(t, plane)
	a.must("DELETE", "/api/v1/namespaces/doomed", "")
	settle(t, plane)
	equal(t, "the condition", "DiscoveryFailed: Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "+
		"wings.example.com/v1: stale GroupVersion discovery: wings.example.com/v1", a.untilCondition(t, "NamespaceDeletionDiscoveryFailure"))
	if code, _ := a.do("GET", "/api/v1/namespaces/doomed/configmaps/a", ""); code != http.StatusNotFound {
		t.Errorf("what this server has in it stays: %d", code)
	}
	a.must("DELETE", apiServices+"/v1.wings.example.com", "")
	settle(t, plane)
	if code, body := a.do("GET", "/api/v1/namespaces/doomed", ""); code != http.StatusNotFound {
		t.Errorf("%d %s", code, body)
	}
}

// TestNamespaceDeletionTellsWhatOtherServersRefuse, and that of another namespace goes on.
func TestNamespaceDeletionTellsWhatOtherServersRefuse(t *testing.T) {
	t.Parallel()
	s := newWingServer(t, map[string]http.HandlerFunc{
		"/apis/wings.example.com/v1/namespaces/doomed/wings": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no `+r.Method+`"}`)
		},
	})
	s.verbs = `"get","list","delete","deletecollection"`
	_, plane, a := aggregating(t, s, nil)
	for _, name := range []string{"doomed", "other"} {
		a.must("POST", "/api/v1/namespaces", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n")
	}
	settle(t, plane)
	a.must("DELETE", "/api/v1/namespaces/doomed", "")
	a.must("DELETE", "/api/v1/namespaces/other", "")
	settle(t, plane)
	equal(t, "the condition", "ContentDeletionFailed: Failed to delete all resource types, 1 remaining: no DELETE", a.untilCondition(t, "NamespaceDeletionContentFailure"))
	if code, _ := a.do("GET", "/api/v1/namespaces/other", ""); code != http.StatusNotFound { // 404 says that there is nothing in it
		t.Errorf("the other namespace: %d", code)
	}
}

func TestCollectorFollowsOwnersAcrossServers(t *testing.T) {
	t.Parallel()
	a := withNotes(t, noteDefinition)
	ownedBy := func(apiVersion, kind string, owner *unstructured.Unstructured) string {
		return ", ownerReferences: [{apiVersion: " + apiVersion + ", kind: " + kind + ", name: " + owner.GetName() + ", uid: " + string(owner.GetUID()) + ", blockOwnerDeletion: true}]}"
	}
	configMap := func(metadata string) *unstructured.Unstructured {
		return a.must("POST", configMaps, "apiVersion: v1\nkind: ConfigMap\nmetadata: "+metadata+"\n")
	}
	note := a.note("default", "{name: owner}")
	configMap("{name: of-note" + ownedBy("example.com/v1", "Note", note))
	local := configMap("{name: owner}")
	a.note("default", "{name: of-configmap"+ownedBy("v1", "ConfigMap", local))
	kept := a.note("default", "{name: kept}")
	configMap("{name: of-kept" + ownedBy("example.com/v1", "Note", kept))

	a.must("DELETE", notesOf+"default/notes/owner", "")
	a.untilGone(t, configMaps, "of-note")
	a.must("DELETE", configMaps+"/owner", "")
	a.untilGone(t, notesOf+"default/notes", "of-configmap")

	// An owner that is deleted in the foreground, on either side, goes after its dependents.
	a.must("DELETE", notesOf+"default/notes/kept?propagationPolicy=Foreground", "")
	a.untilGone(t, notesOf+"default/notes", "kept")
	if code, _ := a.do("GET", configMaps+"/of-kept", ""); code != http.StatusNotFound {
		t.Errorf("the dependent of an owner that is gone: %d", code)
	}
	orphaned := a.note("default", "{name: orphaned}")
	configMap("{name: of-orphaned" + ownedBy("example.com/v1", "Note", orphaned))
	a.must("DELETE", notesOf+"default/notes/orphaned?propagationPolicy=Orphan", "")
	a.untilGone(t, notesOf+"default/notes", "orphaned")
	if got := a.must("GET", configMaps+"/of-orphaned", "").GetOwnerReferences(); len(got) != 0 {
		t.Errorf("an orphan has the owners %v", got)
	}
}

// TestCollectorBelievesOnlyAServerThatAnObjectIsAbsent: neither one that does not answer, nor
// one that does not know the path, nor discovery that lacks the kind says that.
func TestCollectorBelievesOnlyAServerThatAnObjectIsAbsent(t *testing.T) {
	t.Parallel()
	said := func(http.ResponseWriter, *http.Request) {}
	s := newWingServer(t, map[string]http.HandlerFunc{wings + "/lost": func(w http.ResponseWriter, r *http.Request) { said(w, r) }})
	_, plane, a := aggregating(t, s, nil)
	a.must("POST", configMaps, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: child, ownerReferences: [{apiVersion: wings.example.com/v1, kind: Wing, name: lost, uid: u-1}]}\n")
	look := func() int {
		a.must("PATCH", configMaps+"/child", `metadata: {labels: {touched: "`+a.must("GET", configMaps+"/child", "").GetResourceVersion()+`"}}`)
		settle(t, plane)
		code, _ := a.do("GET", configMaps+"/child", "")
		return code
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	const absent = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"wings \"lost\" not found","details":{"name":"lost"}}`
	for name, handler := range map[string]http.HandlerFunc{
		"a path that is not known": http.NotFound,
		"a 404 of something else":  status(404, strings.ReplaceAll(absent, "lost", "other")),
		"a refusal":                status(403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`),
		"no object":                status(200, `{}`),
		"no JSON":                  status(200, `<html>`),
		"an end in the middle": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			panic(http.ErrAbortHandler)
		},
		"a 503": status(503, `{"kind":"Status","apiVersion":"v1","reason":"NotFound","code":404,"details":{"name":"lost"}}`),
	} {
		said = handler
		if code := look(); code != http.StatusOK {
			t.Fatalf("%s: the dependent: %d", name, code)
		}
	}
	s.verbs = `]` // what it serves is not known
	a.must("PATCH", apiServices+"/v1.wings.example.com", "spec: {versionPriority: 11}")
	said = status(404, absent)
	if code := look(); code != http.StatusOK {
		t.Fatalf("a server that does not say what it serves: the dependent: %d", code)
	}
	s.verbs = `"get"`
	a.must("PATCH", apiServices+"/v1.wings.example.com", "spec: {versionPriority: 12}")
	if code := look(); code != http.StatusNotFound {
		t.Errorf("an owner that is absent: the dependent: %d", code)
	}
}

// TestAggregatorFollowsAddressesOfServices that change while it runs: a Service that is not there
// leads to a server once it has an address, and nowhere when that is taken away.
func TestAggregatorFollowsAddressesOfServices(t *testing.T) {
	t.Parallel()
	table, err := serviceaddress.New(true)
	if err != nil {
		t.Fatal(err)
	}
	s := newWingServer(t, nil)
	_, plane, a := aggregating(t, s, func(o *controlplane.Options) { o.Webhooks = webhookclient.Options{Services: table} })
	const none = `False ServiceNotFound: service/wings in "default" is not present (what runs outside of the cluster is given an address by: steer service default/wings=HOST:PORT)`
	patch := map[string]string{"Content-Type": "application/merge-patch+json"}
	for _, step := range []struct{ patch, want string }{
		{"{}", none},
		{`{"default/wings": "` + s.Listener.Addr().String() + `"}`, "True Passed: all checks passed"},
		{`{"default/wings": null}`, none},
	} {
		if code, body := a.send("PATCH", serviceaddress.Path, step.patch, patch); code != http.StatusOK {
			t.Fatalf("%s: %d %s", step.patch, code, body)
		}
		settle(t, plane)
		if got := availability(a); got != step.want {
			t.Errorf("after %s: %s, want %s", step.patch, got, step.want)
		}
	}
}
