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
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// GoList resolves packages by asking the go command: slower by orders of
// magnitude, but it understands everything and downloads what is missing.
type GoList struct {
	build    Build
	packages map[*Listed]*packages.Package
	listed   map[*packages.Package]*Listed
}

// NewGoList returns a resolver for the build.
func NewGoList(build Build) (*GoList, error) {
	if build.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		build.Dir = dir
	}
	return &GoList{build: build, packages: map[*Listed]*packages.Package{}, listed: map[*packages.Package]*Listed{}}, nil
}

// Roots implements [Resolver].
func (g *GoList) Roots(ctx context.Context, patterns []string) ([]*Listed, error) {
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	var roots []*Listed
	var paths []string
	seen := map[string]bool{}
	load := func(dir string, patterns ...string) error {
		config := &packages.Config{
			Context: ctx, Dir: dir,
			Mode:       packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps,
			BuildFlags: []string{"-tags=" + strings.Join(g.build.Tags, ",")},
			Env:        os.Environ(),
		}
		if g.build.GOOS != "" {
			config.Env = append(config.Env, "GOOS="+g.build.GOOS)
		}
		if g.build.GOARCH != "" {
			config.Env = append(config.Env, "GOARCH="+g.build.GOARCH)
		}
		found, err := packages.Load(config, patterns...)
		if err != nil {
			return fmt.Errorf("list packages in %s: %w", dir, err)
		}
		var failed []error
		for _, pkg := range found {
			for _, err := range pkg.Errors {
				if strings.Contains(err.Msg, "does not contain main module") {
					return fmt.Errorf("%s is in no Go module: run this in the folder of a project, or make one with steer init", dir)
				}
				failed = append(failed, err)
			}
			if len(pkg.GoFiles) > 0 && !seen[pkg.ID] {
				seen[pkg.ID] = true
				roots = append(roots, g.of(pkg))
			}
		}
		return errors.Join(failed...)
	}
	var failed []error
	for _, pattern := range patterns {
		if !IsPath(pattern) {
			paths = append(paths, pattern)
			continue
		}
		dir := pattern
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(g.build.Dir, dir)
		}
		top, tree := strings.CutSuffix(dir, string(filepath.Separator)+"...")
		if info, err := os.Stat(top); err == nil && !info.IsDir() {
			top = filepath.Dir(top)
		}
		if !tree {
			failed = append(failed, load(top, "."))
			continue
		}
		failed = append(failed, load(top, "./..."))
		nested, err := nestedModules(top)
		failed = append(failed, err)
		for _, dir := range nested {
			failed = append(failed, load(dir, "./..."))
		}
	}
	if len(paths) > 0 {
		failed = append(failed, load(g.build.Dir, paths...))
	}
	return roots, errors.Join(failed...)
}

// Import implements [Resolver].
func (g *GoList) Import(path string, from *Listed) (*Listed, error) {
	pkg := g.packages[from]
	if pkg == nil || pkg.Imports[path] == nil {
		return nil, fmt.Errorf("package %s is not known to %s: run `go mod tidy`", path, from.Path)
	}
	found := pkg.Imports[path]
	if len(found.GoFiles) == 0 && len(found.Errors) > 0 {
		return nil, brief(found.Errors[0])
	}
	return g.of(found), nil
}

// brief is what the go command says of a package without the commands that it proposes on
// further lines, and without a place: the caller knows the import.
func brief(err packages.Error) error {
	text, _, _ := strings.Cut(err.Msg, "\n")
	return errors.New(strings.TrimSuffix(text, "; to add:"))
}

func (g *GoList) of(pkg *packages.Package) *Listed {
	if listed := g.listed[pkg]; listed != nil {
		return listed
	}
	listed := &Listed{Path: pkg.PkgPath, Files: slices.Clone(pkg.GoFiles)}
	slices.Sort(listed.Files)
	if len(listed.Files) > 0 {
		listed.Dir = filepath.Dir(listed.Files[0])
	}
	g.listed[pkg], g.packages[listed] = listed, pkg
	return listed
}

// nestedModules returns the directories below top that hold a go.mod file.
func nestedModules(top string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() == "go.mod" && filepath.Dir(path) != top {
			found = append(found, filepath.Dir(path))
		}
		return err
	})
	return found, err
}
