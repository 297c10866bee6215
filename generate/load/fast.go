// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	modpath "golang.org/x/mod/module"
)

// Fast resolves packages from go.mod files alone: since Go 1.17 a go.mod file
// lists every module that building its packages needs, so an import path leads to
// a directory by its longest matching module path. It is not safe for concurrent
// use.
type Fast struct {
	build    Build
	selector *selector
	env      goEnv
	modules  map[string]*module // by directory of the go.mod file
	byDir    map[string]*Listed
	absent   map[string]bool // directories without a package
	walked   []string        // directories that trees were looked for in
}

// module is a main module and where its dependencies lie.
type module struct {
	path, dir string
	vendor    bool
	deps      []dependency // longest path first
	inputs    []string     // the files that say so
}

type dependency struct{ path, dir string }

// NewFast returns a resolver for the build.
func NewFast(build Build) (*Fast, error) {
	if build.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		build.Dir = dir
	}
	env, err := readGoEnv()
	if err != nil {
		return nil, err
	}
	if build.GOOS == "" {
		build.GOOS = env.get("GOOS")
	}
	if build.GOARCH == "" {
		build.GOARCH = env.get("GOARCH")
	}
	return &Fast{
		build: build, selector: newSelector(build), env: env,
		modules: map[string]*module{}, byDir: map[string]*Listed{}, absent: map[string]bool{},
	}, nil
}

// Inputs are what a different answer could come from: the directories that were
// searched for packages, and the files that say where modules are.
func (f *Fast) Inputs() (dirs, files []string) {
	for _, m := range f.modules {
		files = append(files, m.inputs...)
	}
	return f.walked, files
}

// Immutable reports whether a path lies in the Go tree or the module cache, where
// nothing changes under a name.
func (f *Fast) Immutable(path string) bool {
	for _, dir := range []string{filepath.Join(f.env.root, "src"), f.env.modCache} {
		if strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// Environment is what the answers depend on besides files.
func (f *Fast) Environment() []string {
	work, err := f.workspace(f.build.Dir)
	if err != nil {
		work = err.Error()
	}
	return []string{f.env.root, f.env.modCache, f.selector.goos, f.selector.goarch, f.env.get("GOFLAGS"), f.env.get("GOWORK"), work}
}

// Roots implements [Resolver].
func (f *Fast) Roots(_ context.Context, patterns []string) ([]*Listed, error) {
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	var roots []*Listed
	seen := map[*Listed]bool{}
	for _, pattern := range patterns {
		found, err := f.match(pattern)
		if err != nil {
			return nil, err
		}
		for _, root := range found {
			if !seen[root] {
				seen[root] = true
				roots = append(roots, root)
			}
		}
	}
	return roots, nil
}

// IsPath reports whether a pattern names directories and not import paths.
func IsPath(pattern string) bool {
	return filepath.IsAbs(pattern) || strings.HasPrefix(pattern, ".")
}

func (f *Fast) match(pattern string) ([]*Listed, error) {
	base, tree := strings.CutSuffix(pattern, "...")
	if tree && base != "" && !strings.HasSuffix(base, "/") || strings.Contains(base, "...") {
		return nil, fmt.Errorf("pattern %q: %w", pattern, ErrFallback)
	}
	var dir string
	if IsPath(pattern) {
		dir = filepath.Clean(base)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(f.build.Dir, dir)
		}
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			dir = filepath.Dir(dir) // a file stands for its package
		}
	} else {
		m, err := f.moduleOf(f.build.Dir)
		if err != nil {
			return nil, err
		}
		rest, ok := within(strings.TrimSuffix(base, "/"), m.path)
		if !ok {
			return nil, fmt.Errorf("pattern %q: %w", pattern, ErrFallback)
		}
		dir = filepath.Join(m.dir, rest)
	}
	if !tree {
		root, err := f.inDir(dir)
		if err != nil {
			return nil, err
		}
		return []*Listed{root}, nil
	}
	return f.tree(dir, IsPath(pattern))
}

// tree lists the packages under a directory; nested modules come after the rest,
// as they do when each module is loaded by itself.
func (f *Fast) tree(top string, nested bool) ([]*Listed, error) {
	var found, others []*Listed
	err := filepath.WalkDir(top, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if dir != top {
			name := entry.Name()
			if name[0] == '.' || name[0] == '_' || name == "testdata" || name == "vendor" {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				if nested {
					more, err := f.tree(dir, true)
					if err != nil {
						return err
					}
					others = append(others, more...)
				}
				return fs.SkipDir
			}
		}
		f.walked = append(f.walked, dir)
		pkg, err := f.inDir(dir)
		if errors.Is(err, ErrNoFiles) {
			return nil
		}
		if err == nil {
			found = append(found, pkg)
		}
		return err
	})
	return append(found, others...), err
}

// inDir lists the package in a directory of some main module.
func (f *Fast) inDir(dir string) (*Listed, error) {
	m, err := f.moduleOf(dir)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(m.dir, dir)
	if err != nil {
		return nil, err
	}
	path := m.path
	if rel != "." {
		path += "/" + filepath.ToSlash(rel)
	}
	return f.listed(path, dir, m)
}

func (f *Fast) listed(path, dir string, m *module) (*Listed, error) {
	if pkg := f.byDir[dir]; pkg != nil {
		return pkg, nil
	}
	if f.absent[dir] {
		return nil, ErrNoFiles
	}
	files, err := f.selector.list(dir)
	if err != nil {
		if errors.Is(err, ErrNoFiles) || errors.Is(err, fs.ErrNotExist) {
			f.absent[dir] = true
		}
		return nil, err
	}
	pkg := &Listed{Path: path, Dir: dir, Files: files, module: m, Std: m == nil}
	f.byDir[dir] = pkg
	return pkg, nil
}

// Import implements [Resolver].
func (f *Fast) Import(path string, from *Listed) (*Listed, error) {
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") || from.Std {
		for _, dir := range []string{"", "vendor"} {
			pkg, err := f.listed(path, filepath.Join(f.env.root, "src", dir, path), nil)
			if err == nil {
				return pkg, nil
			}
		}
		if from.Std {
			return nil, fmt.Errorf("package %s of the standard library: %w", path, ErrFallback)
		}
	}
	m := from.module
	if rest, ok := within(path, m.path); ok {
		pkg, err := f.listed(path, filepath.Join(m.dir, rest), m)
		if err == nil || !missing(err) {
			return pkg, err
		}
	}
	if m.vendor {
		pkg, err := f.listed(path, filepath.Join(m.dir, "vendor", path), m)
		if missing(err) {
			return nil, fmt.Errorf("package %s: %w", path, ErrFallback)
		}
		return pkg, err
	}
	for _, dep := range m.deps {
		if rest, ok := within(path, dep.path); ok {
			pkg, err := f.listed(path, filepath.Join(dep.dir, rest), m)
			if err == nil || !missing(err) {
				return pkg, err
			}
		}
	}
	return nil, fmt.Errorf("package %s: %w", path, ErrFallback)
}

func missing(err error) bool { return errors.Is(err, ErrNoFiles) || errors.Is(err, fs.ErrNotExist) }

// within returns what remains of path below prefix.
func within(path, prefix string) (string, bool) {
	if path == prefix {
		return "", true
	}
	return strings.CutPrefix(path, prefix+"/")
}

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
	work, err := f.workspace(dir)
	if err != nil {
		return nil, err
	}
	if work != "" {
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
func (f *Fast) workspace(dir string) (string, error) {
	switch work := f.env.get("GOWORK"); work {
	case "off":
		return "", nil
	case "":
	default:
		return work, nil
	}
	for {
		work := filepath.Join(dir, "go.work")
		if _, err := os.Stat(work); err == nil {
			return work, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil
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
