// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/crd/cleanup"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// partsOf returns the parts that serve definitions; resolve finds their webhooks.
func partsOf(d *component.Deps, resolve func(context.Context, webhookclient.Service) (webhookclient.Backend, bool)) component.List {
	webhooks, err := webhookclient.New(webhookclient.Options{Resolve: resolve}, webhookclient.Deps{Store: d.Store})
	if err != nil {
		panic(err)
	}
	definitions := crd.New(crd.Options{
		Server: d.Server, Store: d.Store, Transport: d.Server.RoundTripper(componenttest.Admin()), Schemas: custom.NewSchemas(),
		Webhooks: webhooks, NewUID: d.Entropy.UID, Measure: func(...prometheus.Collector) {},
		Upkeep: d.Upkeep, Log: d.Logger(),
	})
	list := component.List{definitions.Component(d.Progress), definitions.TerminationComponent(), component.ServerController(cleanup.New(d.Catalog, step.LifeOf))}
	list[0].Close = webhooks.Close
	return list
}

// api calls a server.
type api struct {
	tb     testing.TB
	host   string
	client *http.Client
	// own is the part of the definitions.
	own component.Component
}

// serve returns a server that serves definitions, with more parts. Before each request its
// controllers do all that is left to do.
func serve(tb testing.TB, more ...func(*component.Deps) component.List) (*componenttest.Server, *api) {
	tb.Helper()
	return serveConverting(tb, nil, more...)
}

// serveConverting is serve with a webhook that is behind the Service default/hook.
func serveConverting(tb testing.TB, hook http.RoundTripper, more ...func(*component.Deps) component.List) (*componenttest.Server, *api) {
	tb.Helper()
	resolve := func(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
		return webhookclient.Backend{Transport: hook}, s == webhookclient.Service{Namespace: "default", Name: "hook", Port: 443}
	}
	var own component.Component
	s := componenttest.New(tb, func(d *component.Deps) component.List {
		list := partsOf(d, resolve)
		own = list[0]
		for _, declare := range more {
			list = append(list, declare(d)...)
		}
		return list
	})
	return s, &api{tb: tb, host: "https://steer.invalid", client: s.Client(componenttest.Admin()), own: own}
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
	return refusal(code, answer)
}

// refusal renders an answer that is a Status.
func refusal(code int, answer []byte) string {
	var status struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(answer, &status); err != nil {
		return fmt.Sprintf("%d %s", code, answer)
	}
	return fmt.Sprintf("%d %s: %s", code, status.Reason, status.Message)
}

// names returns the names in a list.
func (a *api) names(path string) []string {
	a.tb.Helper()
	var out []string
	items, _, _ := unstructured.NestedSlice(a.must(http.MethodGet, path, "").Object, "items")
	for _, item := range items {
		name, _, _ := unstructured.NestedString(item.(map[string]any), "metadata", "name")
		out = append(out, name)
	}
	return out
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
