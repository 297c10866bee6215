// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permissions follows which permissions the requests of an operator need: those that
// it used, and those that its roles lack.
package permissions

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
)

// Rights are what an operator used. They are safe for concurrent use.
type Rights struct {
	mu   sync.Mutex
	used map[string]bool
}

func (r *Rights) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used == nil {
		r.used = map[string]bool{}
	}
	r.used[what] = true
}

// Write writes the file of a test to a folder.
func (r *Rights) Write(folder, test string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	file, err := os.CreateTemp(folder, "*.rights")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, strings.Join(slices.Concat([]string{test}, slices.Sorted(maps.Keys(r.used))), "\n"))
	return cmp.Or(err, file.Close())
}

// NoteRequest notes which rights a request, with this status of its answer, needs.
func (r *Rights) NoteRequest(method string, u *url.URL, status int) {
	group, resource, name := addressed(u.Path)
	if resource == "" {
		return
	}
	verbs := []string{verbOf(method, name, u.Query())}
	if method == http.MethodPatch && status == http.StatusCreated { // an apply that creates
		verbs = append(verbs, "create")
	}
	for _, verb := range verbs {
		r.note(fmt.Sprintf("groups=%s,resources=%s,verbs=%s", cmp.Or(group, `""`), resource, verb))
	}
}

// addressed returns the resource, with its subresource, that a path names, and the name
// of the object; resource is empty for other paths.
func addressed(path string) (group, resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return "", "", ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 && (group != "" || parts[2] != "status" && parts[2] != "finalize") {
		parts = parts[2:]
	}
	resource = parts[0]
	if len(parts) > 1 {
		name = parts[1]
	}
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return group, resource, name
}

func verbOf(method, name string, query url.Values) string {
	watch := query.Get("watch")
	switch {
	case method == http.MethodGet && (watch == "true" || watch == "1"):
		return "watch"
	case method == http.MethodGet && name == "":
		return "list"
	case method == http.MethodGet:
		return "get"
	case method == http.MethodPost:
		return "create"
	case method == http.MethodPut:
		return "update"
	case method == http.MethodPatch:
		return "patch"
	case name == "":
		return "deletecollection"
	}
	return "delete"
}
