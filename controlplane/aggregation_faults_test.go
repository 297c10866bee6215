// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// TestAggregatorIsNotHeldUpByAServerThatHangs, and the server is told when the client leaves.
func TestAggregatorIsNotHeldUpByAServerThatHangs(t *testing.T) {
	t.Parallel()
	came, left := make(chan struct{}), make(chan struct{})
	s := newWingServer(t, map[string]http.HandlerFunc{wings: func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
		close(left)
	}})
	base, _, a := aggregating(t, s, nil)
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+wings, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer jane")
	ended := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
		}
		ended <- err
	}()
	<-came
	a.must("GET", "/api/v1/namespaces/default", "")
	a.must("GET", "/apis", "")
	a.must("GET", "/apis/wings.example.com/v1", "")
	a.must("GET", "/openapi/v2", "")
	leave()
	<-left
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAggregatorPassesOnThatAnAnswerIsIncomplete: no client takes a part of an answer, or of a
// stream, for all of it.
func TestAggregatorPassesOnThatAnAnswerIsIncomplete(t *testing.T) {
	t.Parallel()
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"kind":"WingList",`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	stream := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{\"type\":\"ADDED\"}\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	s := newWingServer(t, map[string]http.HandlerFunc{wings: half, wings + "/stream": stream, wings + "/whole": func(http.ResponseWriter, *http.Request) {}})
	base, plane, a := aggregating(t, s, nil)
	within, err := rest.HTTPClientFor(plane.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for from, client := range map[string]*http.Client{base: http.DefaultClient, plane.RESTConfig().Host: within} {
		for path, want := range map[string]string{wings: `{"kind":"WingList",`, wings + "/stream?watch=1": "{\"type\":\"ADDED\"}\n"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, from+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer jane")
			response, err := client.Do(request)
			if err != nil {
				continue // nothing of it
			}
			got, err := io.ReadAll(response.Body)
			response.Body.Close()
			if string(got) != want || err == nil {
				t.Errorf("%s: %q, error %v", from+path, got, err)
			}
		}
	}
	if code, body := a.do("GET", wings+"/whole", ""); code != http.StatusOK {
		t.Errorf("the next request: %d %s", code, body)
	}
}

// TestAggregatorKeepsItsDescriptionsFromServersThatLie.
func TestAggregatorKeepsItsDescriptionsFromServersThatLie(t *testing.T) {
	t.Parallel()
	said, code := "", http.StatusOK
	answer := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, said)
	}
	s := newWingServer(t, map[string]http.HandlerFunc{"/openapi/v2": answer, "/openapi/v3": answer, "/apis": http.NotFound})
	_, plane, a := aggregating(t, s, nil)
	const good = `{"swagger":"2.0","info":{},"paths":{"/apis/wings.example.com/v1/wings":{"get":{"responses":{"200":{"description":"OK"}}}}}}`
	described := func() bool {
		body := a.must("GET", "/openapi/v2", "").Object
		paths := body["paths"].(map[string]any)
		if paths["/apis/apps/v1/stolen"] != nil || paths["/apis/apps/v1/namespaces/{namespace}/deployments"] == nil {
			t.Error("the descriptions of this server are others")
		}
		return paths["/apis/wings.example.com/v1/wings"] != nil
	}
	for i, c := range []struct {
		code int
		said string
		want bool
	}{
		{200, "no JSON", false},
		{200, `{"swagger":"2.0","paths":{"/apis/apps/v1/stolen":{"get":{"responses":{}}}}}`, false},
		{200, good, true},
		{200, `{"swagger":"2.0","paths":{"/apis/apps/v1/stolen":7}}`, true}, // what it said last
		{404, "", false},
	} {
		said, code = c.said, c.code
		a.must("PATCH", apiServices+"/v1.wings.example.com", fmt.Sprintf("spec: {versionPriority: %d}", 20+i))
		settle(t, plane)
		if got := described(); got != c.want {
			t.Errorf("after %d %q the version is described: %v", c.code, c.said, got)
		}
		if got := availability(a); got != "True Passed: all checks passed" {
			t.Errorf("after %d %q: %s", c.code, c.said, got)
		}
		if _, found := a.do("GET", "/apis/wings.example.com/v1", ""); !strings.Contains(string(found), `"wings"`) {
			t.Errorf("after %d %q: discovery: %s", c.code, c.said, found)
		}
	}
}

// TestAggregatorFollowsAServerThatComesBackChanged: another address, another certificate, other
// resources.
func TestAggregatorFollowsAServerThatComesBackChanged(t *testing.T) {
	t.Parallel()
	first := newWingServer(t, map[string]http.HandlerFunc{wings: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "first") }})
	second := newWingServer(t, map[string]http.HandlerFunc{wings: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "second") }})
	second.verbs = `"get","list","watch"`
	behind := first
	_, plane, a := aggregating(t, first, func(o *controlplane.Options) {
		o.Webhooks.Resolve = func(ctx context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
			return behind.resolve(ctx, s)
		}
	})
	verbs := func() string {
		response := a.open(t.Context(), "GET", "/apis/wings.example.com/v1", "")
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	touch := func(n int) {
		a.must("PATCH", apiServices+"/v1.wings.example.com", fmt.Sprintf("spec: {versionPriority: %d}", n))
		settle(t, plane)
	}
	if _, body := a.do("GET", wings, ""); string(body) != "first" {
		t.Fatalf("%s", body)
	}
	first.Close()
	touch(20)
	if code, body := a.do("GET", wings, ""); code != http.StatusServiceUnavailable || string(body) != "service unavailable\n" {
		t.Fatalf("a server that is gone: %d %s", code, body)
	}
	behind = second
	touch(21)
	if _, body := a.do("GET", wings, ""); string(body) != "second" {
		t.Errorf("%s: %s", body, availability(a))
	}
	if got := verbs(); !strings.Contains(got, `"watch"`) {
		t.Errorf("discovery says %s", got)
	}
}

func TestAggregatorMeasuresUnavailableServices(t *testing.T) {
	t.Parallel()
	s := newWingServer(t, nil)
	registry := prometheus.NewRegistry()
	_, plane, a := aggregating(t, s, func(o *controlplane.Options) { o.Metrics = registry })
	measured := func() string {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range families {
			for _, m := range f.GetMetric() {
				labels := ""
				for _, l := range m.GetLabel() {
					labels += " " + l.GetValue()
				}
				if strings.HasPrefix(f.GetName(), "aggregator_unavailable_apiservice") && (strings.Contains(labels, "wings") || strings.HasSuffix(labels, "v1.apps")) {
					out = append(out, fmt.Sprint(f.GetName(), labels, " ", m.GetGauge().GetValue()+m.GetCounter().GetValue()))
				}
			}
		}
		return strings.Join(out, "\n")
	}
	const gauge = "aggregator_unavailable_apiservice"
	equal(t, "while it answers", gauge+" v1.apps 0\n"+gauge+" v1.wings.example.com 0", measured())
	s.Close()
	a.must("PATCH", apiServices+"/v1.wings.example.com", "spec: {versionPriority: 11}")
	settle(t, plane)
	const lost = "\n" + gauge + "_total v1.wings.example.com FailedDiscoveryCheck 1"
	equal(t, "while it does not", gauge+" v1.apps 0\n"+gauge+" v1.wings.example.com 1"+lost, measured())
	a.must("DELETE", apiServices+"/v1.wings.example.com", "")
	settle(t, plane)
	equal(t, "once its APIService is gone", gauge+" v1.apps 0"+lost, measured())
}
