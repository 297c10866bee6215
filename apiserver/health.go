// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

// kubernetesVersion is the version of the API that is served; clients switch
// features by it.
const kubernetesVersion = "v1.36.3"

// mountBuiltins mounts the paths that every server has.
func (s *Server) mountBuiltins() {
	checks := []Check{
		{Name: "ping", Run: func() error { return nil }},
		{Name: "storage", Run: s.store.Health},
		{Name: "shutdown", ReadyOnly: true, Run: func() error {
			if s.stopping.Err() != nil {
				return fmt.Errorf("the server is shutting down")
			}
			return nil
		}},
	}
	checks = append(checks, s.options.Checks...)
	for _, kind := range []string{"healthz", "livez", "readyz"} {
		h := &health{kind: kind}
		for _, c := range checks {
			if kind != "livez" || !c.ReadyOnly {
				h.checks = append(h.checks, c)
			}
		}
		s.Handle("/"+kind, h)
		s.Handle("/"+kind+"/", h)
	}
	s.Handle("/version", http.HandlerFunc(s.version))
	s.Handle("/metrics", s.metrics.handler())
}

func (s *Server) version(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if req := resource.RequestFrom(r.Context()); req != nil {
			s.fail(&exchange.Writer{ResponseWriter: w, Warnings: req.Warnings}, &endpoint.Request{Request: *req, HTTP: r}, endpoint.Refusal(http.StatusMethodNotAllowed, ""))
			return
		}
	}
	steer := s.options.Version
	if steer == "" {
		steer = "devel"
	}
	raw, err := json.MarshalIndent(version.Info{
		Major: "1", Minor: "36", EmulationMajor: "1", EmulationMinor: "36", MinCompatibilityMajor: "1", MinCompatibilityMinor: "35",
		GitVersion: kubernetesVersion + "+steer." + steer, GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}

// health answers one of the health paths and the paths of its checks.
type health struct {
	kind   string
	checks []Check
}

func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"+h.kind), "/"); name != "" {
		h.one(w, name)
		return
	}
	query := r.URL.Query()
	excluded := query["exclude"]
	var report, unknown strings.Builder
	failed := false
	for _, name := range excluded {
		if !slices.ContainsFunc(h.checks, func(c Check) bool { return c.Name == name }) {
			fmt.Fprintf(&unknown, "warn: some health checks cannot be excluded: no matches for %q\n", name)
		}
	}
	for _, c := range h.checks {
		if slices.Contains(excluded, c.Name) {
			fmt.Fprintf(&report, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		if err := c.Run(); err != nil {
			failed = true
			fmt.Fprintf(&report, "[-]%s failed: %v\n", c.Name, err)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", c.Name)
	}
	if failed {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprintf(w, "%s%s%s check failed\n", report.String(), unknown.String(), h.kind)
		return
	}
	if _, verbose := query["verbose"]; verbose {
		_, _ = fmt.Fprintf(w, "%s%s%s check passed\n", report.String(), unknown.String(), h.kind)
		return
	}
	_, _ = fmt.Fprint(w, "ok")
}

func (h *health) one(w http.ResponseWriter, name string) {
	for _, c := range h.checks {
		if c.Name != name {
			continue
		}
		if err := c.Run(); err != nil {
			http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprint(w, "ok")
		return
	}
	http.Error(w, "404 page not found", http.StatusNotFound)
}
