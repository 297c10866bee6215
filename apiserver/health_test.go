// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/steer-dev/steer/apiserver"
)

func TestHealthChecksAreNamed(t *testing.T) {
	t.Parallel()
	broken := errors.New("no ink")
	s := newServer(t, func(o *apiserver.Options) {
		o.Checks = []apiserver.Check{{Name: "printer", Run: func() error { return broken }, ReadyOnly: true}}
	})
	rt := s.RoundTripper(admin)
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/livez":                   {200, "ok"},
		"/readyz":                  {500, "[-]printer failed: reason withheld"},
		"/readyz?exclude=printer":  {200, "ok"},
		"/readyz/printer":          {500, "no ink"},
		"/readyz/ping":             {200, "ok"},
		"/livez?verbose":           {200, "[+]ping ok\n"},
		"/readyz/unknown":          {404, "404 page not found"},
		"/livez?verbose&exclude=x": {200, "livez check passed"},
	} {
		if got := send(t, rt, http.MethodGet, path, ""); got.code != want.code || !strings.Contains(got.body, want.text) {
			t.Errorf("%s: %d %q, want %d %q", path, got.code, got.body, want.code, want.text)
		}
	}
}

func TestHealthResultsAreCounted(t *testing.T) {
	t.Parallel()
	var broken error
	s := newServer(t, func(o *apiserver.Options) {
		o.Checks = []apiserver.Check{{Name: "printer", Run: func() error { return broken }}}
	})
	rt := s.RoundTripper(admin)
	send(t, rt, http.MethodGet, "/livez", "")
	broken = errors.New("no ink")
	send(t, rt, http.MethodGet, "/livez", "")
	send(t, rt, http.MethodGet, "/readyz?exclude=printer", "")
	got := send(t, rt, http.MethodGet, "/metrics/slis", "").body
	for _, want := range []string{
		`kubernetes_healthcheck{name="ping",type="livez"} 1`, `kubernetes_healthcheck{name="printer",type="livez"} 0`, `kubernetes_healthcheck{name="shutdown",type="readyz"} 1`,
		`kubernetes_healthchecks_total{name="printer",status="success",type="livez"} 1`, `kubernetes_healthchecks_total{name="printer",status="error",type="livez"} 1`,
		`kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 2`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("/metrics/slis lacks %s", want)
		}
	}
	if strings.Contains(got, `name="printer",type="readyz"`) {
		t.Error("a check that was excluded is counted")
	}
}

func TestMetricsShowGoAndTheProcess(t *testing.T) {
	t.Parallel()
	shared := prometheus.NewRegistry()
	shared.MustRegister(collectors.NewGoCollector()) // as the owner of the registry may do
	for name, registry := range map[string]*prometheus.Registry{"own": nil, "empty": prometheus.NewRegistry(), "shared": shared} {
		s := newServer(t, func(o *apiserver.Options) { o.Metrics = registry })
		for range 2 {
			got := send(t, s.RoundTripper(admin), http.MethodGet, "/metrics", "")
			for _, want := range []string{"\ngo_goroutines ", "\ngo_gc_duration_seconds_count ", "\nprocess_cpu_seconds_total ", "\nprocess_open_fds "} {
				if got.code != 200 || !strings.Contains(got.body, want) {
					t.Errorf("%s registry: %d, without %q", name, got.code, want)
				}
			}
		}
	}
}

func TestIndexListsWhatIsServed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Handle("/mounted/here", http.NotFoundHandler())
	s.Handle("/below/", http.NotFoundHandler())
	list := func(path string) []string {
		t.Helper()
		var index struct{ Paths []string }
		got := send(t, s.RoundTripper(admin), http.MethodGet, path, "")
		if err := json.Unmarshal([]byte(got.body), &index); err != nil || got.code != 200 {
			t.Fatalf("%s: %d, %v", path, got.code, err)
		}
		return index.Paths
	}
	before := list("/")
	if !slices.IsSorted(before) || !slices.Equal(before, list("/index.html")) {
		t.Errorf("the lists are not sorted, or not alike: %q", before)
	}
	for path, want := range map[string]bool{
		"/apis/example.com": true, "/apis/example.com/v1": true, "/livez/ping": true, "/readyz/shutdown": true, "/livez/shutdown": false,
		"/version": true, "/version/": false, "/mounted/here": true, "/below/": false, "/": false, "/index.html": false, "/metrics/slis": true,
	} {
		if slices.Contains(before, path) != want {
			t.Errorf("%s is listed: %v, want %v", path, !want, want)
		}
	}
	s.Remove("example.com", "widgets")
	if after := list("/"); slices.Contains(after, "/apis/example.com") {
		t.Error("a group that was removed is listed")
	}
	if got := send(t, s.RoundTripper(admin), http.MethodGet, "/no/such/path", ""); got.code != 404 {
		t.Errorf("an unknown path: %d", got.code)
	}
}
