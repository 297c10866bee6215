// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Check reports nil while what it watches over is well. It runs for every
// probe, so it must be quick and must not block.
type Check func(r *http.Request) error

// checks serves a set of named checks the way Kubernetes components do: at the
// root all of them, below it one by name, ?verbose tells each result and
// ?exclude=name leaves one out.
type checks struct {
	root string // such as "/healthz"

	mu     sync.Mutex
	names  []string
	byName map[string]Check
}

func newChecks(root string) *checks {
	return &checks{root: root, byName: map[string]Check{}}
}

func (c *checks) add(name string, check Check) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name == "" || strings.Contains(name, "/") || check == nil {
		return fmt.Errorf("manager: check %q on %s: want a name without a slash and a function", name, c.root)
	}
	if _, ok := c.byName[name]; ok {
		return fmt.Errorf("manager: check %q on %s exists already", name, c.root)
	}
	c.names = append(c.names, name)
	c.byName[name] = check
	return nil
}

func (c *checks) lookup(path string) (names []string, byName map[string]Check, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, byName = slices.Clone(c.names), make(map[string]Check, len(c.byName))
	for name, check := range c.byName {
		byName[name] = check
	}
	if one := strings.Trim(strings.TrimPrefix(path, c.root), "/"); one != "" {
		if byName[one] == nil {
			return nil, nil, false
		}
		names = []string{one}
	}
	return names, byName, true
}

// run runs all checks up to the first failure.
func (c *checks) run(r *http.Request) error {
	names, byName, _ := c.lookup(c.root)
	for _, name := range names {
		if err := byName[name](r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (c *checks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	names, byName, ok := c.lookup(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	excluded := query["exclude"]
	var report strings.Builder
	failed := false
	for _, name := range names {
		if i := slices.Index(excluded, name); i >= 0 {
			excluded = slices.Delete(excluded, i, i+1)
			fmt.Fprintf(&report, "[+]%s excluded: ok\n", name)
			continue
		}
		if err := byName[name](r); err != nil {
			failed = true
			fmt.Fprintf(&report, "[-]%s failed: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", name)
	}
	for _, name := range excluded {
		fmt.Fprintf(&report, "warn: no check is named %q\n", name)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	what := strings.TrimPrefix(c.root, "/")
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s%s check failed\n", &report, what)
	case query.Has("verbose"):
		fmt.Fprintf(w, "%s%s check passed\n", &report, what)
	default:
		fmt.Fprint(w, "ok")
	}
}
