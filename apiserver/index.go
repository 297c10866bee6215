// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// indexPath is the other path of the index at /.
const indexPath = "/index.html"

// index answers / and [indexPath] with the list of served paths, by which clients
// detect a Kubernetes API.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	body, err := json.MarshalIndent(metav1.RootPaths{Paths: s.paths()}, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client may have disconnected
}

// paths returns the sorted paths that are served, without those of single objects and
// below mounted handlers.
func (s *Server) paths() []string {
	t := s.table.Load()
	paths := append(t.discovery().Paths(), "/openapi/v2", "/openapi/v3", "/openapi/v3/")
	for path := range t.handlers {
		if path != indexPath && !strings.HasSuffix(path, "/") {
			paths = append(paths, path)
		}
	}
	for _, kind := range healthKinds() {
		for _, c := range s.checks(kind) {
			paths = append(paths, "/"+kind+"/"+c.Name)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
