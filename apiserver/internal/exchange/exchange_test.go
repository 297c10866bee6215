// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

func TestPathsNameTheirTarget(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]exchange.RequestInfo{
		"/":                             {},
		"/api/v1":                       {},
		"/apis/apps/v1":                 {},
		"/version":                      {},
		"/api/v1/nodes":                 {Resource: true, Version: "v1", Plural: "nodes"},
		"/api/v1/namespaces":            {Resource: true, Version: "v1", Plural: "namespaces"},
		"/api/v1/namespaces/a":          {Resource: true, Version: "v1", Plural: "namespaces", Namespace: "a", Name: "a"},
		"/api/v1/namespaces/a/finalize": {Resource: true, Version: "v1", Plural: "namespaces", Namespace: "a", Name: "a", Subresource: "finalize"},
		"/api/v1/namespaces/a/pods":     {Resource: true, Version: "v1", Plural: "pods", Namespace: "a"},
		"/api/v1/namespaces/a/services/b/proxy/x/y": {
			Resource: true, Version: "v1", Plural: "services", Namespace: "a", Name: "b", Subresource: "proxy", Rest: "x/y"},
		"/apis/g.io/v1/watch/things":              {Resource: true, Group: "g.io", Version: "v1", Plural: "things", Watch: true},
		"/apis/g.io/v1/watch/namespaces/a/ts/b":   {Resource: true, Group: "g.io", Version: "v1", Plural: "ts", Namespace: "a", Name: "b", Watch: true},
		"/apis/g.io/v1/namespaces/a/things/b/sub": {Resource: true, Group: "g.io", Version: "v1", Plural: "things", Namespace: "a", Name: "b", Subresource: "sub"},
	} {
		if diff := cmp.Diff(want, exchange.ParsePath(path)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestMethodsAndTargetsMakeVerbs(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"GET /api/v1/pods": "list", "GET /api/v1/pods?watch=true": "watch", "GET /api/v1/pods?watch=0": "list", "GET /api/v1/pods?watch": "watch",
		"GET /api/v1/watch/pods": "watch", "GET /api/v1/namespaces/a/pods/b": "get", "POST /api/v1/pods": "create", "PUT /api/v1/nodes/a": "update",
		"PATCH /api/v1/nodes/a": "patch", "DELETE /api/v1/nodes/a": "delete", "DELETE /api/v1/nodes": "deletecollection", "TRACE /api/v1/nodes": "",
	} {
		method, address, _ := strings.Cut(request, " ")
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		target := exchange.ParsePath(u.Path)
		if got := target.Verb(method, u.Query); got != want {
			t.Errorf("%s is %q, want %q", request, got, want)
		}
	}
}

func TestFieldSelectorsNameObjectsOfListsAndWatches(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"GET /api/v1/pods?fieldSelector=metadata.name%3Da":                                 "a",
		"HEAD /api/v1/pods?fieldSelector=metadata.name%3Da":                                "a",
		"GET /api/v1/pods?watch=1&fieldSelector=x%3Dy,metadata.name%3Da":                   "a",
		"GET /api/v1/pods?fieldSelector=metadata.name!%3Da":                                "",
		"GET /api/v1/pods?fieldSelector=x%3Dy":                                             "",
		"GET /api/v1/pods?fieldSelector=":                                                  "",
		"GET /api/v1/pods?fieldSelector=metadata.name%3Da%2Fb":                             "",
		"GET /api/v1/pods?fieldSelector=((":                                                "",
		"GET /api/v1/pods?fieldSelector=metadata.name%3Da&limit=few":                       "",
		"GET /api/v1/pods?fieldSelector=metadata.name%3Da&timeoutSeconds=":                 "",
		"GET /api/v1/pods?fieldSelector=metadata.name%3Da&labelSelector=a+in+(":            "",
		"GET /api/v1/pods?fieldSelector=metadata.name%3Da&labelSelector=a&limit=5":         "a",
		"GET /api/v1/pods?fieldSelector=metadata.name%3Da,x%3D" + strings.Repeat("b", 400): "a",
		"GET /api/v1/pods?fieldSelector=metadata.name%3Da,x%3D" + strings.Repeat("b", 600): "", // beyond the limit
		"DELETE /api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Da":                 "",
		"GET /api/v1/watch/pods?fieldSelector=metadata.name%3Da":                           "",
		"GET /api/v1/namespaces/n/pods/b?fieldSelector=metadata.name%3Da":                  "",
		"POST /api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Da":                   "",
		"GET /api/v1/watch/namespaces/n/pods/b?watch=1&fieldSelector=metadata.name%3Da":    "",
	} {
		method, address, _ := strings.Cut(request, " ")
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		target := exchange.ParsePath(u.Path)
		if got := target.SelectedName(target.Verb(method, u.Query), u.Query); got != want {
			t.Errorf("%s selects %q, want %q", request, got, want)
		}
	}
}

func TestGateDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := exchange.NewMaxInFlight(exchange.Limits{Reads: 1})
		leave, err := g.Enter(exchange.RequestDigest{Read: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Enter(exchange.RequestDigest{Read: true}); err == nil {
			t.Error("a second read came in")
		}
		if out, err := g.Enter(exchange.RequestDigest{Read: true, Lane: exchange.Exempt}); err != nil {
			t.Error(err)
		} else {
			out()
		}
		drained := make(chan error, 1)
		go func() { drained <- g.Drain(context.Background()) }()
		synctest.Wait()
		select {
		case <-drained:
			t.Fatal("drained with a request inside")
		default:
		}
		if _, err := g.Enter(exchange.RequestDigest{Read: true}); err == nil {
			t.Error("a request came into a closed MaxInFlight")
		}
		leave()
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if err := g.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestLargeAnswersAreCompressedIfTheClientAcceptsGzip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size   int
		accept string
		want   string
	}{{200 << 10, "br, gzip", "gzip"}, {200 << 10, "", ""}, {1 << 10, "gzip", ""}} {
		b := exchange.NewBody(0)
		for range 2 {
			b.AddString(strings.Repeat("x", c.size/2))
		}
		recorder := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", c.accept)
		exchange.Send(&exchange.Writer{ResponseWriter: recorder, Warnings: &resource.Warnings{}}, r, 200, "text/plain", b)
		resp := recorder.Result()
		var from io.Reader = resp.Body
		if resp.Header.Get("Content-Encoding") != c.want {
			t.Errorf("%+v: encoding %q", c, resp.Header.Get("Content-Encoding"))
		}
		if c.want == "gzip" {
			z, err := gzip.NewReader(from)
			if err != nil {
				t.Fatal(err)
			}
			from = z
		}
		if data, err := io.ReadAll(from); err != nil || len(data) != c.size {
			t.Errorf("%+v: %d bytes, %v", c, len(data), err)
		}
	}
}

func TestWarningsAreBoundedAndQuoted(t *testing.T) {
	t.Parallel()
	texts := &resource.Warnings{}
	texts.Add(`say "hi"`)
	texts.Add(`say "hi"`)
	long := strings.Repeat("y", 3000)
	texts.Add("1" + long)
	texts.Add("2" + long)
	recorder := httptest.NewRecorder()
	w := &exchange.Writer{ResponseWriter: recorder, Warnings: texts}
	w.WriteHeader(http.StatusOK)
	got := recorder.Result().Header["Warning"]
	want := []string{`299 - "say \"hi\""`, `299 - "1` + long[:255] + `"`, `299 - "2` + long[:255] + `"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWriterWritesWithoutDeadlines(t *testing.T) {
	t.Parallel()
	var none *exchange.Deadlines
	none.Bound(httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")), 1)
	none.Lift()
	recorder := httptest.NewRecorder()
	w := &exchange.Writer{ResponseWriter: recorder, Warnings: &resource.Warnings{}, Deadlines: none}
	if _, err := w.Write([]byte("answer")); err != nil {
		t.Error(err)
	}
	w.Flush()
	none.Done()
	if !recorder.Flushed || recorder.Body.String() != "answer" {
		t.Errorf("flushed %t: %q", recorder.Flushed, recorder.Body)
	}
}
