// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// module is a published Go module with API types.
type module struct {
	// name is what the table calls it.
	name          string
	path, version string
	// paths are the patterns of its API packages.
	paths []string
}

// modules are what both sides work on.
func modules() []module {
	return []module{
		{"cluster-api", "sigs.k8s.io/cluster-api/api", "v1.14.2", []string{"./..."}},
		{"gateway-api", "sigs.k8s.io/gateway-api", "v1.6.0", []string{"./apis/...", "./apisx/..."}},
		{"prometheus-operator", "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring", "v0.91.0", []string{"./..."}},
	}
}

// copyTo puts the module's sources into a directory where they can be written, and
// fetches the modules that they import.
func (m module) copyTo(ctx context.Context, dir string) error {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.path+"@"+m.version)
	download.Dir = os.TempDir() // outside any module
	data, err := download.Output()
	if err != nil {
		return fmt.Errorf("fetch module %s@%s: %w: %s", m.path, m.version, err, data)
	}
	var at struct{ Dir string }
	if err := json.Unmarshal(data, &at); err != nil {
		return err
	}
	err = filepath.WalkDir(at.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(at.Dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(dir, name), 0o755)
		}
		if strings.HasPrefix(name, "go.work") { // names modules that are not published with it
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), text, 0o644)
	})
	if err != nil {
		return fmt.Errorf("copy module %s: %w", m.path, err)
	}
	// What either side needs is in the module cache before any clock starts.
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-f", "{{.Dir}}"}, m.paths...)...)
	list.Dir, list.Env = dir, environment()
	if out, err := list.CombinedOutput(); err != nil {
		return fmt.Errorf("resolve module %s: %w: %s", m.path, err, out)
	}
	return nil
}

// packages are the import paths of the module's API packages.
func (m module) packages(ctx context.Context, dir string) ([]string, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list"}, m.paths...)...)
	list.Dir, list.Env = dir, environment()
	data, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages of %s: %w", m.path, err)
	}
	var kept []string
	for name := range strings.FieldsSeq(string(data)) {
		if base := name[strings.LastIndex(name, "/")+1:]; isVersion.MatchString(base) { // not the group's own package, or one of functions
			kept = append(kept, name)
		}
	}
	return kept, nil
}

// isVersion tells the packages of API versions.
var isVersion = regexp.MustCompile(`^v\d`)

// environment keeps flags and workspaces of this machine out of both sides' runs.
func environment(more ...string) []string {
	return append(append(os.Environ(), "GOFLAGS=", "GOWORK=off"), more...)
}

// outputs reads what a run left in a directory, by relative name.
func outputs(dir string, keep func(name string) bool) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !keep(name) {
			return err
		}
		text, err := os.ReadFile(path)
		found[name] = string(text)
		return err
	})
	return found, err
}
