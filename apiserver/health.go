// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/zpages"
	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/apiserver/resource"
)

// KubernetesVersion is the version of the API that is served; clients enable features
// by it.
const KubernetesVersion = "v1.37.2"

// KubernetesMinor returns the minor version of the API that is served, such as 36.
func KubernetesMinor() int {
	minor, err := strconv.Atoi(strings.Split(KubernetesVersion, ".")[1])
	if err != nil {
		panic("apiserver: " + err.Error()) // it is a constant
	}
	return minor
}

// mountBuiltins mounts the paths that every server has.
func (s *Server) mountBuiltins() {
	slis := &slis{}
	s.change(func(t *served) {
		for _, kind := range healthKinds() {
			h := &health{kind: kind, checks: s.checks(kind), slis: slis}
			t.handlers["/"+kind], t.handlers["/"+kind+"/"] = h, h
		}
		t.handlers[indexPath] = http.HandlerFunc(s.index)
		t.handlers["/version"], t.handlers["/version/"] = http.HandlerFunc(s.version), http.HandlerFunc(s.version)
		t.handlers["/statusz"], t.handlers["/flagz"] = s.statusz(), zpages.Flagz(s.options.Flags)
		t.handlers[notes.Path] = s.notes
		t.handlers["/metrics"] = s.metrics.handler()
		t.handlers["/metrics/slis"] = slis.handler()
	})
}

// healthKinds are the health paths, without the slash.
func healthKinds() []string { return []string{"healthz", "livez", "readyz"} }

// checks returns the checks of a health path in the order of their output. Their names
// are those of kube-apiserver.
func (s *Server) checks(kind string) []Check {
	fine := func() error { return nil }
	all := []Check{
		{Name: "ping", Run: fine},
		{Name: "log", Run: fine}, // it is written synchronously, so it cannot be stuck apart from requests
		{Name: "etcd", Run: s.store.Health},
		{Name: "etcd-readiness", ReadyOnly: true, Run: s.store.Health},
		{Name: "informer-sync", ReadyOnly: true, Run: fine}, // reads use the store, not informers
	}
	all = append(all, s.options.Checks...)
	all = append(all, Check{Name: "shutdown", ReadyOnly: true, Run: func() error {
		if s.leaving.Load() {
			return errors.New("the server is shutting down")
		}
		return nil
	}})
	return slices.DeleteFunc(all, func(c Check) bool { return c.ReadyOnly && kind != "readyz" })
}

func (s *Server) version(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.TrimSuffix(r.URL.Path, "/") != "/version":
		s.refuse(w, r, endpoint.NoSuchResource())
		return
	case r.Method != http.MethodGet:
		s.refuse(w, r, endpoint.Refusal(http.StatusMethodNotAllowed, ""))
		return
	}
	steer := s.options.Version
	if steer == "" {
		steer = "devel"
	}
	raw, err := json.MarshalIndent(version.Info{
		Major: "1", Minor: "37", EmulationMajor: "1", EmulationMinor: "37", MinCompatibilityMajor: "1", MinCompatibilityMinor: "36",
		GitVersion: KubernetesVersion + "+steer." + steer, GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}

// statusz answers /statusz.
func (s *Server) statusz() http.Handler {
	number := strings.TrimPrefix(KubernetesVersion, "v")
	return zpages.Statusz(zpages.Process{
		Started: time.Now(), GoVersion: runtime.Version(),
		Version: number, Emulates: number[:strings.LastIndex(number, ".")], Paths: s.paths,
	})
}

// refuse answers a request for a mounted path with the Status of an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	req := resource.RequestFrom(r.Context())
	s.fail(&exchange.Writer{ResponseWriter: w, Warnings: req.Warnings}, &endpoint.Request{Request: *req, HTTP: r}, err)
}

// health answers one of the health paths and the paths of its checks. The causes of
// failures are shown only at the paths of single checks, because the summary is
// readable without authentication.
type health struct {
	kind   string
	checks []Check
	slis   *slis
}

func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if below, one := strings.CutPrefix(r.URL.Path, "/"+h.kind+"/"); one {
		h.one(w, below)
		return
	}
	query := r.URL.Query()
	unknown := map[string]bool{}
	for _, name := range query["exclude"] {
		unknown[name] = true
	}
	var report strings.Builder
	failed := false
	for _, c := range h.checks {
		if slices.Contains(query["exclude"], c.Name) {
			delete(unknown, c.Name)
			fmt.Fprintf(&report, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		err := c.Run()
		h.slis.observe(h.kind, c.Name, err)
		if err != nil {
			failed = true
			fmt.Fprintf(&report, "[-]%s failed: reason withheld\n", c.Name)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", c.Name)
	}
	if len(unknown) > 0 {
		quoted := slices.Sorted(maps.Keys(unknown))
		for i, name := range quoted {
			quoted[i] = strconv.Quote(name)
		}
		fmt.Fprintf(&report, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(quoted, ","))
	}
	if failed {
		http.Error(w, report.String()+h.kind+" check failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, verbose := query["verbose"]; !verbose {
		_, _ = io.WriteString(w, "ok")
		return
	}
	_, _ = fmt.Fprintf(w, "%s%s check passed\n", report.String(), h.kind)
}

func (h *health) one(w http.ResponseWriter, name string) {
	at := slices.IndexFunc(h.checks, func(c Check) bool { return c.Name == name })
	if at < 0 {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if err := h.checks[at].Run(); err != nil {
		http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok")
}
