// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/internal/egress"
)

// Documents of servers, in the forms that there are.
const (
	aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	aggregatedList = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"other.com"},"versions":[{"version":"v1","resources":[{"resource":"lies"}]}]},` +
		`{"metadata":{"name":"example.com"},"versions":[{"version":"v2","resources":[{"resource":"lies"}]},{"version":"v1","resources":[` +
		`{"resource":"wings","scope":"Namespaced","verbs":["get"],"subresources":[{"subresource":"exec","verbs":["create"]}]},` +
		`{"resource":"tails","responseKind":{"group":"","version":"","kind":"Tail"},"scope":"Cluster","verbs":["list"]}]}]}]}`
	resourceList = `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[` +
		`{"name":"wings/exec","namespaced":true,"kind":"Exec","group":"x.com","version":"v3","verbs":["create"]},` +
		`{"name":"wings","singularName":"wing","namespaced":true,"kind":"Wing","shortNames":["w"],"categories":["all"],"verbs":["get"]},` +
		`{"name":"tails","namespaced":false,"kind":"Tail","verbs":["list"]}]}`
)

// described renders what the server says in discovery about the version of wings.
func (w *world) described() string {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "https://steer.invalid/apis", http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Accept", aggregatedType)
	response, err := w.Server.Server.RoundTripper(componenttest.Admin()).RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		w.t.Fatalf("%v: %s", err, body)
	}
	for _, g := range list.Items {
		if g.Name == "example.com" {
			return renderedGroup(&g)
		}
	}
	return "none"
}

func renderedGroup(g *apidiscoveryv2.APIGroupDiscovery) string {
	var out []string
	for _, v := range g.Versions {
		out = append(out, fmt.Sprint(v.Version, " ", v.Freshness))
		for _, r := range v.Resources {
			out = append(out, fmt.Sprint(r.Resource, " ", r.ResponseKind, " ", r.Scope, " ", r.Verbs, " ", r.SingularResource, r.ShortNames, r.Categories))
			for _, s := range r.Subresources {
				out = append(out, fmt.Sprint(r.Resource, "/", s.Subresource, " ", s.ResponseKind, " ", s.Verbs))
			}
		}
	}
	return strings.Join(out, "\n")
}

const (
	fromAggregated = "v1 Current\nwings /, Kind= Namespaced [get] [] []\nwings/exec /, Kind= [create]\ntails /, Kind=Tail Cluster [list] [] []"
	fromLists      = "v1 Current\nwings /, Kind=Wing Namespaced [get] wing[w] [all]\nwings/exec x.com/v3, Kind=Exec [create]\ntails /, Kind=Tail Cluster [list] [] []"
)

func TestDiscoveryUnderstandsTheFormsOfServers(t *testing.T) {
	t.Parallel()
	type answers = map[string]func(*http.Request) (*http.Response, error)
	for what, tt := range map[string]struct {
		answers answers
		want    string
	}{
		"all versions":             {answers{"/apis": text(200, aggregatedType, aggregatedList)}, fromAggregated},
		"all versions but the one": {answers{"/apis": text(200, aggregatedType, `{"kind":"APIGroupDiscoveryList","items":[]}`)}, "v1 Current"},
		"one version":              {answers{"/apis": text(406, "", ""), "/apis/example.com/v1": text(200, "application/json", resourceList)}, fromLists},
		"an older form of all":     {answers{"/apis": text(200, "application/json", aggregatedList), "/apis/example.com/v1": text(200, "application/json", resourceList)}, fromLists},
		"a form of no media type":  {answers{"/apis": text(200, ";", aggregatedList), "/apis/example.com/v1": text(200, "application/json", resourceList)}, fromLists},
		"no answer":                {answers{"/apis": down}, "v1 Stale"},
		"an overloaded server":     {answers{"/apis": text(503, "", ""), "/apis/example.com/v1": text(200, "application/json", resourceList)}, "v1 Stale"},
		"no such version":          {answers{}, "v1 Stale"},
		"no answer about one":      {answers{"/apis/example.com/v1": down}, "v1 Stale"},
		"garbage about all":        {answers{"/apis": text(200, aggregatedType, `[`)}, "v1 Stale"},
		"garbage about one":        {answers{"/apis/example.com/v1": text(200, "application/json", `[`)}, "v1 Stale"},
		"an index of OpenAPI that is garbage": {
			answers{"/apis": text(200, aggregatedType, aggregatedList), "/openapi/v3": text(200, "application/json", "[")}, fromAggregated,
		},
		"no answer about OpenAPI": {answers{"/apis": text(200, aggregatedType, aggregatedList), "/openapi/v3": down}, fromAggregated},
		"another kind about all":  {answers{"/apis": text(200, aggregatedType, `{"kind":"PodList","items":[]}`)}, "v1 Stale"},
		"another kind about one":  {answers{"/apis/example.com/v1": text(200, "application/json", `{"kind":"PodList","items":[]}`)}, "v1 Stale"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, egress.Services{Resolve: resolve(&other{answers: tt.answers})}, nil)
			d := drive(w, apiservice.NewDiscovery(w.aggregation))
			d.put(wingsKey, wings(is(v1.ConditionTrue)))
			same(t, "discovery before the server is asked", "v1 Stale", w.described())
			same(t, "requests", "ask: GET /apis", d.step())
			same(t, "discovery", tt.want, w.described())
			same(t, "requests at once", "", d.step())
		})
	}
}

func TestDiscoveryKeepsWhatAServerSaidLast(t *testing.T) {
	t.Parallel()
	server := &other{answers: map[string]func(*http.Request) (*http.Response, error){
		"/apis": func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("If-None-Match") == `"one"` {
				return text(304, "", "")(r)
			}
			return text(200, aggregatedType, aggregatedList, "ETag", `"one"`)(r)
		},
	}}
	w := newWorld(t, egress.Services{Resolve: resolve(server)}, nil)
	d := drive(w, apiservice.NewDiscovery(w.aggregation))
	d.put(wingsKey, wings(is(v1.ConditionTrue)))
	ask := func() {
		d.step()
		d.step() // decides when the server is asked again
	}
	for range 2 {
		ask()
		same(t, "discovery", fromAggregated, w.described())
		d.now = d.now.Add(time.Minute)
	}
	server.answers["/apis"] = down
	ask()
	same(t, "discovery while the server is down", strings.Replace(fromAggregated, "Current", "Stale", 1), w.described())
	server.answers["/apis"] = text(304, "", "")
	d.now = d.now.Add(time.Minute)
	ask()
	same(t, "discovery once it is back", fromAggregated, w.described())
	d.put(wingsKey, nil)
	same(t, "discovery without the APIService", "none", w.described())
	d.put(wingsKey, wings(is(v1.ConditionTrue)))
	same(t, "discovery of a new APIService", "v1 Stale", w.described())
}

// TestDiscoveryIsStaleOnlyWhileItCannotBeRead, whether the version is available or not.
func TestDiscoveryIsStaleOnlyWhileItCannotBeRead(t *testing.T) {
	t.Parallel()
	server := &other{answers: map[string]func(*http.Request) (*http.Response, error){"/apis": text(200, aggregatedType, aggregatedList)}}
	w := newWorld(t, egress.Services{Resolve: resolve(server)}, nil)
	d := drive(w, apiservice.NewDiscovery(w.aggregation))
	for _, available := range []v1.ConditionStatus{v1.ConditionFalse, v1.ConditionTrue, v1.ConditionUnknown} {
		d.put(wingsKey, wings(is(available)))
		d.step()
		same(t, "discovery while available is "+string(available), fromAggregated, w.described())
	}
	server.answers["/apis"] = down
	d.put(wingsKey, wings(is(v1.ConditionTrue)))
	d.step()
	same(t, "discovery that cannot be read", strings.Replace(fromAggregated, "Current", "Stale", 1), w.described())
}

// TestOpenAPIIsReadWhileDiscoveryIsInvalid, and not of a server that does not answer.
func TestOpenAPIIsReadWhileDiscoveryIsInvalid(t *testing.T) {
	t.Parallel()
	const swagger = `{"swagger":"2.0","info":{"title":"wings","version":"1"},"paths":{},"definitions":{"com.example.v1.Wing":{"type":"object"}}}`
	for want, answer := range map[bool]func(*http.Request) (*http.Response, error){true: text(200, "application/json", "["), false: down} {
		server := &other{answers: map[string]func(*http.Request) (*http.Response, error){
			"/apis": answer, "/apis/example.com/v1": answer, "/openapi/v2": text(200, "application/json", swagger),
		}}
		w := newWorld(t, egress.Services{Resolve: resolve(server)}, nil)
		d := drive(w, apiservice.NewDiscovery(w.aggregation))
		d.put(wingsKey, wings())
		d.step()
		if got := slices.Contains(server.requests(), "GET /openapi/v2"); got != want {
			t.Errorf("OpenAPI v2 is asked for: %t, want %t", got, want)
		}
		same(t, "discovery", "v1 Stale", w.described())
	}
}

func TestDiscoveryAsksAgainInTime(t *testing.T) {
	t.Parallel()
	server := &other{answers: map[string]func(*http.Request) (*http.Response, error){"/apis": down}}
	w := newWorld(t, egress.Services{Resolve: resolve(server)}, nil)
	c := apiservice.NewDiscovery(w.aggregation)
	d := drive(w, c)
	d.put(wingsKey, wings(is(v1.ConditionTrue)))
	same(t, "the time of the next step of a controller that has asked nothing", time.Time{}, c.Wake())
	var waits []time.Duration
	ask := func() {
		t.Helper()
		same(t, "requests", "ask: GET /apis", d.step())
		same(t, "requests afterwards", "", d.step())
		wait := c.Wake().Sub(d.now)
		waits = append(waits, wait)
		d.now = d.now.Add(wait - time.Millisecond)
		same(t, "requests before it is time", "", d.step())
		d.now = d.now.Add(time.Millisecond)
	}
	for range 9 {
		ask()
	}
	server.answers["/apis"] = text(200, aggregatedType, aggregatedList)
	ask()
	server.answers["/apis"] = down
	ask()
	ask()
	d.put(wingsKey, wings(is(v1.ConditionTrue))) // a change
	ask()
	const ms, s = time.Millisecond, time.Second
	same(t, "waits", []time.Duration{500 * ms, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s, 500 * ms, s, 500 * ms}, waits)
}

func TestDiscoveryAsksOnceAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Services{Resolve: resolve(&other{})}, nil)
	d := drive(w, apiservice.NewDiscovery(w.aggregation))
	d.put(wingsKey, wings(is(v1.ConditionTrue)))
	requests := d.requests()
	d.put(wingsKey, wings(is(v1.ConditionTrue)))
	same(t, "requests while one is under way", 0, len(d.requests()))
	d.controller.Done(requests[0], d.carry(requests[0]))
	requests = d.requests()
	same(t, "requests after a change meanwhile", 1, len(requests))
	d.put(wingsKey, nil)
	d.controller.Done(requests[0], d.carry(requests[0]))
	same(t, "requests once it is gone", 0, len(d.requests()))
	same(t, "the time of the next step", time.Time{}, d.controller.(*apiservice.Discovery).Wake())
	d.put(wingsKey, wings(is(v1.ConditionTrue)))
	fresh := apiservice.NewDiscovery(w.aggregation)
	fresh.Reset(d.Store.Latest())
	same(t, "requests of a controller that starts", 1, len(fresh.Sync(d.Store.Latest(), d.now)))
}

// TestOpenAPIOfAServerIsMerged with all its documents; those of versions of this server, or of another
// APIService, are not.
func TestOpenAPIOfAServerIsMerged(t *testing.T) {
	t.Parallel()
	const index = `{"paths":{
"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1?hash=1"},
"apis/example.com/v2":{"serverRelativeURL":"/openapi/v3/apis/example.com/v2?hash=2"},
"apis/example.com":{"serverRelativeURL":"/openapi/v3/apis/example.com?hash=3"},
"apis/example.com/v3":{"serverRelativeURL":"/openapi/v3/apis/other.example.com/v3?hash=4"},
"apis/example.com/v4":{"serverRelativeURL":"https://example.com/"},
"apis/example.com/v5":{"serverRelativeURL":""},
"apis/apps.example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/apps.example.com/v1?hash=5"},
"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=lie"},
"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=lie"}}}`
	server := &other{answers: map[string]func(*http.Request) (*http.Response, error){
		"/apis":       text(200, aggregatedType, aggregatedList),
		"/openapi/v3": text(200, "application/json", index),
	}}
	server.answers["/apis/example.com/v1"] = text(200, "application/json", resourceList)
	for _, path := range []string{"apis/example.com/v2", "apis/example.com", "apis/apps/v1", "apis/apps.example.com/v1"} {
		server.answers["/openapi/v3/"+path] = text(200, "application/json", "of another server")
	}
	w := newWorld(t, egress.Services{Resolve: resolve(server)}, controllers)
	w.create(wings())
	w.create(wings(func(s *v1.APIService) {
		s.Name, s.Spec.Group, s.Spec.Service.Name = "v1.apps.example.com", "apps.example.com", "apps"
	}))
	var got struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	_, body, _ := w.get("/openapi/v3", nil)
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	for path, url := range map[string]string{
		"apis/example.com/v1": "/openapi/v3/apis/example.com/v1?hash=1", "apis/example.com/v2": "/openapi/v3/apis/example.com/v2?hash=2",
		"apis/example.com":    "/openapi/v3/apis/example.com?hash=3",
		"apis/example.com/v3": "", "apis/example.com/v4": "", "apis/example.com/v5": "", "apis/apps.example.com/v1": "",
	} {
		if got.Paths[path].URL != url {
			t.Errorf("the URL of %s is %q, want %q", path, got.Paths[path].URL, url)
		}
	}
	if strings.Contains(body, "lie") {
		t.Errorf("the index has what another server says about a version of this one: %s", body)
	}
	for path, theirs := range map[string]bool{"apis/example.com/v2": true, "apis/example.com": true, "apis/apps/v1": false, "apis/apps.example.com/v1": false} {
		if _, body, _ := w.get("/openapi/v3/"+path, nil); (body == "of another server") != theirs {
			t.Errorf("%s is answered with %.60q", path, body)
		}
	}
}
