// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package mapping_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/client/wire"
)

// server is documents by path; a request is "path" or "path if-none-match etag".
type server struct {
	mu        sync.Mutex
	documents map[string]wire.Response
	requests  []string
	gate      chan struct{}
	err       error
}

func (s *server) Do(_ context.Context, req wire.Request) (*wire.Response, error) {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line := req.Path
	if req.IfNoneMatch != "" {
		line += " if-none-match " + req.IfNoneMatch
	}
	s.requests = append(s.requests, line)
	if s.err != nil {
		return nil, s.err
	}
	doc, ok := s.documents[req.Path]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, req.Path)
	}
	if doc.ETag != "" && doc.ETag == req.IfNoneMatch {
		return &wire.Response{Status: http.StatusNotModified}, nil
	}
	return &doc, nil
}

func (s *server) set(path, contentType, etag, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.documents == nil {
		s.documents = map[string]wire.Response{}
	}
	s.documents[path] = wire.Response{Status: 200, ContentType: contentType, ETag: etag, Body: []byte(body)}
}

func (s *server) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func aggregatedServer() *server {
	s := &server{}
	s.set("/api", aggregated, "e1", `{"items":[{"versions":[{"version":"v1","resources":[
		{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["get","list"],"shortNames":["po"],"categories":["all"],
		 "subresources":[{"subresource":"status","responseKind":{"kind":"Pod"},"verbs":["get","patch"]}]},
		{"resource":"nodes","responseKind":{"kind":"Node"},"scope":"Cluster","singularResource":"node","verbs":["get"]}]}]}]}`)
	s.set("/apis", aggregated, "e2", `{"items":[{"metadata":{"name":"apps"},"versions":[
		{"version":"v2","resources":[{"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster","verbs":["get"]}]},
		{"version":"v1","resources":[{"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster","verbs":["get"]},{"resource":"olds","responseKind":{"kind":"Old"},"scope":"Namespaced","verbs":["get"]}]}]}]}`)
	return s
}

func legacyServer() *server {
	s := &server{}
	s.set("/api", "application/json", "", `{"kind":"APIVersions","versions":["v1"]}`)
	s.set("/api/v1", "application/json", "", `{"resources":[
		{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list"],"shortNames":["po"],"categories":["all"]},
		{"name":"pods/status","namespaced":true,"kind":"Pod","verbs":["get","patch"]},
		{"name":"nodes","singularName":"node","kind":"Node","verbs":["get"]}]}`)
	s.set("/apis", "application/json", "", `{"groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1"},{"groupVersion":"apps/v2"}],"preferredVersion":{"groupVersion":"apps/v2"}}]}`)
	s.set("/apis/apps/v1", "application/json", "", `{"resources":[{"name":"things","kind":"Thing","verbs":["get"]},{"name":"olds","kind":"Old","namespaced":true,"verbs":["get"]}]}`)
	s.set("/apis/apps/v2", "application/json", "", `{"resources":[{"name":"things","kind":"Thing","verbs":["get"]}]}`)
	return s
}

func TestBothKindsOfDiscoveryGiveTheSame(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, s := range map[string]*server{"aggregated": aggregatedServer(), "legacy": legacyServer()} {
		m := mapping.New(s)
		pod, err := m.ForKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		if err != nil {
			t.Fatal(name, err)
		}
		want := mapping.Resource{
			GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
			Singular: "pod", Namespaced: true, Verbs: []string{"get", "list"}, ShortNames: []string{"po"}, Categories: []string{"all"},
			Subresources: map[string][]string{"status": {"get", "patch"}},
		}
		if diff := cmp.Diff(want, pod); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		for kind, version := range map[string]string{"Thing": "v2", "Old": "v1"} {
			r, err := m.ForKind(ctx, schema.GroupVersionKind{Group: "apps", Kind: kind})
			if err != nil || r.GVK.Version != version {
				t.Errorf("%s: preferred version of %s is %q, %v, want %s", name, kind, r.GVK.Version, err, version)
			}
		}
		thing, err := m.ForResource(ctx, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "things"})
		if err != nil || thing.GVK.Kind != "Thing" || thing.GVK.Version != "v1" {
			t.Errorf("%s: %+v, %v", name, thing, err)
		}
		mapped, err := m.RESTMapper(ctx).RESTMapping(schema.GroupKind{Kind: "Node"}, "v1")
		if err != nil || mapped.Scope.Name() != meta.RESTScopeNameRoot || mapped.Resource.Resource != "nodes" {
			t.Errorf("%s: %+v, %v", name, mapped, err)
		}
		if all, err := m.All(ctx); err != nil || len(all) != 5 {
			t.Errorf("%s: %d resources, %v", name, len(all), err)
		}
	}
}

func TestPathsOfResources(t *testing.T) {
	t.Parallel()
	core := mapping.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespaced: true}
	cluster := mapping.Resource{GVR: schema.GroupVersionResource{Group: "g.io", Version: "v1", Resource: "things"}}
	for want, got := range map[string]string{
		"/api/v1/pods":                       core.Path("", "", ""),
		"/api/v1/namespaces/x/pods":          core.Path("x", "", ""),
		"/api/v1/namespaces/x/pods/a/status": core.Path("x", "a", "status"),
		"/apis/g.io/v1/things/a":             cluster.Path("ignored", "a", ""),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestMissingKindIsAskedForAgainAndThenFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		s := aggregatedServer()
		m := mapping.New(s)
		widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
		_, err := m.ForKind(ctx, widget)
		if !meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "install its CustomResourceDefinition") {
			t.Fatal(err)
		}
		s.taken()
		_, _ = m.ForKind(ctx, widget)
		if diff := cmp.Diff([]string{"/api if-none-match e1", "/apis if-none-match e2"}, s.taken()); diff != "" {
			t.Fatalf("the second question: (-want +got)\n%s", diff)
		}
		s.set("/apis", aggregated, "e3", `{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[{"resource":"widgets","responseKind":{"kind":"Widget"},"scope":"Namespaced"}]}]}]}`)
		if r, err := m.ForKind(ctx, widget); err != nil || r.GVR.Resource != "widgets" {
			t.Fatalf("%+v, %v", r, err)
		}
		s.taken()
		if _, err := m.ForKind(ctx, widget); err != nil || len(s.taken()) != 0 {
			t.Fatalf("what is known is not asked for: %v", err)
		}
		m.Invalidate()
		if _, err := m.ForKind(ctx, widget); err != nil || len(s.taken()) != 2 {
			t.Fatalf("after Invalidate: %v", err)
		}
	})
}

func TestQuestionsForAMissingKindAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := aggregatedServer()
		m := mapping.New(s)
		for range 1000 {
			_, _ = m.ForKind(context.Background(), schema.GroupVersionKind{Group: "no.io", Version: "v1", Kind: "No"})
		}
		if n := len(s.taken()); n > 50 {
			t.Fatalf("%d requests for 1000 questions in one moment", n)
		}
	})
}

func TestConcurrentQuestionsShareOneAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := aggregatedServer()
		s.gate = make(chan struct{})
		m := mapping.New(s)
		var wg sync.WaitGroup
		errs := make([]error, 20)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = m.ForKind(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
			})
		}
		synctest.Wait()
		close(s.gate)
		wg.Wait()
		if err := errors.Join(errs...); err != nil || len(s.taken()) != 2 {
			t.Fatalf("%v", err)
		}
	})
}

func TestFailedDiscoveryIsAnErrorAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := aggregatedServer()
	s.err = fmt.Errorf("connection refused")
	m := mapping.New(s)
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	if _, err := m.ForKind(context.Background(), pod); err == nil || meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "connection refused") {
		t.Fatalf("%v: not to be taken for a missing kind", err)
	}
	s.err = nil
	if _, err := m.ForKind(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
}

func TestGroupWhoseServerIsAwayIsLeftOut(t *testing.T) {
	t.Parallel()
	s := legacyServer()
	s.mu.Lock()
	delete(s.documents, "/apis/apps/v1")
	s.mu.Unlock()
	all, err := mapping.New(s).All(context.Background())
	if err != nil || len(all) != 3 || slices.ContainsFunc(all, func(r mapping.Resource) bool { return r.GVK.Kind == "Old" }) {
		t.Fatalf("%v, %v", all, err)
	}
}
