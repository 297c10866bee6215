// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	return []string{f.env.root, f.env.modCache, f.selector.goos, f.selector.goarch, f.env.get("GOFLAGS"), f.env.get("GOWORK"), f.workspace(f.build.Dir)}
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
