// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	modpath "golang.org/x/mod/module"
)

// module is a main module and where its dependencies lie.
type module struct {
	path, dir string
	vendor    bool
	deps      []dependency // longest path first
	inputs    []string     // the files that say so
}

type dependency struct{ path, dir string }

// moduleOf finds the main module of a directory.
func (f *Fast) moduleOf(dir string) (*module, error) {
	top := dir
	for {
		if m := f.modules[top]; m != nil {
			return m, nil
		}
		if _, err := os.Stat(filepath.Join(top, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(top)
		if parent == top {
			return nil, fmt.Errorf("%s is in no module: %w", dir, ErrFallback)
		}
		top = parent
	}
	m, err := f.readModule(top)
	if err != nil {
		return nil, err
	}
	f.modules[top] = m
	return m, nil
}

func (f *Fast) readModule(dir string) (*module, error) {
	if off := f.env.get("GO111MODULE"); off == "off" {
		return nil, fmt.Errorf("GO111MODULE=off: %w", ErrFallback)
	}
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.ParseLax(name, text, nil)
	if err != nil || mod.Module == nil {
		return nil, fmt.Errorf("%s: %w", name, ErrFallback)
	}
	m := &module{path: mod.Module.Mod.Path, dir: dir, inputs: []string{name, filepath.Join(dir, "go.sum")}}

	flags := f.env.get("GOFLAGS")
	if strings.Contains(flags, "-modfile") || strings.Contains(flags, "-overlay") || strings.Contains(flags, "-tags") {
		return nil, fmt.Errorf("GOFLAGS=%s: %w", flags, ErrFallback)
	}
	if work := f.workspace(dir); work != "" {
		m.inputs = append(m.inputs, work)
		return m, f.askGo(m)
	}
	if old := mod.Go == nil || compareGo(mod.Go.Version, "1.17") < 0; old {
		return m, f.askGo(m)
	}
	modules := filepath.Join(dir, "vendor", "modules.txt")
	if _, err := os.Stat(modules); err == nil && !strings.Contains(flags, "-mod=mod") && !strings.Contains(flags, "-mod=readonly") {
		m.vendor = true
		m.inputs = append(m.inputs, modules)
		return m, nil
	}
	for _, require := range mod.Require {
		at := require.Mod
		for _, replace := range mod.Replace {
			if replace.Old.Path == at.Path && (replace.Old.Version == "" || replace.Old.Version == at.Version) {
				at = replace.New
				if replace.Old.Version != "" {
					break
				}
			}
		}
		dep := dependency{path: require.Mod.Path}
		switch {
		case at.Version != "":
			path, err := modpath.EscapePath(at.Path)
			if err != nil {
				return nil, err
			}
			version, err := modpath.EscapeVersion(at.Version)
			if err != nil {
				return nil, err
			}
			dep.dir = filepath.Join(f.env.modCache, path+"@"+version)
		case filepath.IsAbs(at.Path):
			dep.dir = at.Path
		default:
			dep.dir = filepath.Join(dir, at.Path)
		}
		m.deps = append(m.deps, dep)
	}
	m.sort()
	return m, nil
}

func (m *module) sort() {
	slices.SortStableFunc(m.deps, func(a, b dependency) int { return cmp.Compare(len(b.path), len(a.path)) })
}

// askGo lets the go command list the modules, where choosing their versions takes
// more than reading one file.
func (f *Fast) askGo(m *module) error {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	cmd.Dir = m.dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list -m all: %w", ErrFallback)
	}
	for line := range strings.Lines(string(out)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && dir != "" && path != m.path {
			m.deps = append(m.deps, dependency{path: path, dir: dir})
		}
	}
	m.sort()
	return nil
}

// workspace returns the go.work file that governs a directory, or "".
func (f *Fast) workspace(dir string) string {
	switch work := f.env.get("GOWORK"); work {
	case "off":
		return ""
	case "":
	default:
		return work
	}
	for {
		work := filepath.Join(dir, "go.work")
		if _, err := os.Stat(work); err == nil {
			return work
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func compareGo(a, b string) int {
	var aMinor, bMinor int
	// What is no release of Go 1 counts as the oldest.
	_, _ = fmt.Sscanf(a, "1.%d", &aMinor)
	_, _ = fmt.Sscanf(b, "1.%d", &bMinor)
	return cmp.Compare(aMinor, bMinor)
}

// goEnv answers what `go env` would, without starting it.
type goEnv struct {
	root, modCache string
	saved          map[string]string
}

func readGoEnv() (goEnv, error) {
	env := goEnv{saved: map[string]string{}}
	file := os.Getenv("GOENV")
	if dir, err := os.UserConfigDir(); err == nil && file == "" {
		file = filepath.Join(dir, "go", "env")
	}
	if text, err := os.ReadFile(file); err == nil {
		for line := range bytes.Lines(text) {
			if key, value, ok := strings.Cut(strings.TrimSpace(string(line)), "="); ok {
				env.saved[key] = value
			}
		}
	}
	env.modCache = env.get("GOMODCACHE")
	if env.modCache == "" {
		path := env.get("GOPATH")
		if path == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return env, fmt.Errorf("no GOPATH: %w", ErrFallback)
			}
			path = filepath.Join(home, "go")
		}
		env.modCache = filepath.Join(filepath.SplitList(path)[0], "pkg", "mod")
	}
	env.root = env.get("GOROOT")
	if env.root == "" {
		env.root = findRoot()
	}
	if env.root == "" {
		return env, fmt.Errorf("no GOROOT: %w", ErrFallback)
	}
	return env, nil
}

func (e goEnv) get(key string) string { return cmp.Or(os.Getenv(key), e.saved[key]) }

// findRoot looks for the Go tree: that of the go command on PATH, or that which
// built this program.
func findRoot() string {
	candidates := []string{}
	if tool, err := exec.LookPath("go"); err == nil {
		if target, err := filepath.EvalSymlinks(tool); err == nil {
			candidates = append(candidates, filepath.Dir(filepath.Dir(target)))
		}
	}
	candidates = append(candidates, runtime.GOROOT()) //nolint:staticcheck // a fallback where no go command is installed
	for _, root := range candidates {
		if _, err := os.Stat(filepath.Join(root, "src", "unsafe")); err == nil && root != "" {
			return root
		}
	}
	return ""
}
