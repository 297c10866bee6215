// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package house_test has the tests that guard the repository itself: the direction of its
// imports, its weight, its state, its pages. They run in its root folder, and name files
// as seen from there.
package house_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const modulePath = "github.com/steer-dev/steer"

// goFile is one parsed Go file of the main module.
type goFile struct {
	path   string // slash-separated, relative to the module
	syntax *ast.File
	lines  int
}

func (f goFile) imports() []string {
	var out []string
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

func (f goFile) generated() bool { return ast.IsGenerated(f.syntax) }

var files = sync.OnceValues(treeFiles)

// treeFiles lists the files of the tree, without nested modules' Go files being
// told apart: see mainModule.
func treeFiles() ([]string, error) {
	var out []string
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == ".git" || name == "bin" || name == "dist" {
				return filepath.SkipDir
			}
			return nil
		}
		out = append(out, filepath.ToSlash(p))
		return nil
	})
	return out, err
}

func tree(t *testing.T) []string {
	t.Helper()
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// nestedModules are the folders below this one with a go.mod of their own.
func nestedModules(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, p := range tree(t) {
		if dir, ok := strings.CutSuffix(p, "/go.mod"); ok {
			out = append(out, dir+"/")
		}
	}
	return out
}

var parsed = sync.OnceValues(func() ([]goFile, error) {
	all, err := files()
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var out []goFile
	for _, p := range all {
		if !strings.HasSuffix(p, ".go") || strings.Contains("/"+p, "/testdata/") {
			continue
		}
		syntax, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		out = append(out, goFile{path: p, syntax: syntax, lines: fset.File(syntax.FileStart).LineCount()})
	}
	return out, nil
})

// goFiles are the Go files of the main module, testdata left out.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	nested := nestedModules(t)
	return slices.DeleteFunc(slices.Clone(all), func(f goFile) bool {
		return slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(f.path, dir) })
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func TestEveryFileCarriesTheLicence(t *testing.T) {
	t.Parallel()
	for _, p := range tree(t) {
		base := filepath.Base(p)
		switch {
		case strings.Contains("/"+p, "/testdata/"):
			continue
		case strings.HasSuffix(p, ".go"), strings.HasSuffix(p, ".sh"), strings.HasSuffix(p, ".yaml"), strings.HasSuffix(p, ".yml"), base == "Makefile", p == ".ci/run":
		default:
			continue
		}
		data, err := os.ReadFile(p)
		if err != nil {
			t.Error(err)
			continue
		}
		head := string(data[:min(len(data), 400)])
		if !strings.Contains(head, "Copyright The Steer Authors.") || !strings.Contains(head, "SPDX-License-Identifier: Apache-2.0") {
			t.Errorf("%s: the first lines must carry the licence header (see any other file)", p)
		}
	}
}

// packageLimit is how many lines a package has at most, without tests and generated code.
const packageLimit = 2500

// largePackages are the packages above the limit: how large each may be, and why. They shrink;
// a number is lowered with its package.
var largePackages = map[string]struct {
	lines  int
	reason string
}{
	"controller": {3190, "a third of it documents the exported API, whose options share the unexported types of attempts; what is not tied to those is in controller/internal"},
}

func TestFilesAreReadInOneSitting(t *testing.T) {
	t.Parallel()
	const soft, hard = 400, 800
	type size struct {
		lines, files int
	}
	packages := map[string]size{}
	var long []goFile
	for _, f := range goFiles(t) {
		if f.generated() {
			continue
		}
		if f.lines > hard {
			t.Errorf("%s has %d lines, at most %d", f.path, f.lines, hard)
		}
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		if f.lines > soft {
			long = append(long, f)
		}
		dir := filepath.ToSlash(filepath.Dir(f.path))
		s := packages[dir]
		packages[dir] = size{s.lines + f.lines, s.files + 1}
	}
	var report strings.Builder
	for _, dir := range sortedKeys(packages) {
		limit := packageLimit
		if large, ok := largePackages[dir]; ok {
			limit = large.lines
		}
		if lines := packages[dir].lines; lines > limit {
			t.Errorf("%s has %d lines, at most %d: move what stands by itself to a package below it", dir, lines, limit)
		} else if limit > packageLimit && lines <= packageLimit {
			t.Errorf("%s has %d lines: take it out of largePackages", dir, lines)
		}
		fmt.Fprintf(&report, "%6d lines %3d files  %s\n", packages[dir].lines, packages[dir].files, dir)
	}
	slices.SortFunc(long, func(a, b goFile) int { return cmp.Compare(b.lines, a.lines) })
	for _, f := range long {
		fmt.Fprintf(&report, "over %d: %5d  %s\n", soft, f.lines, f.path)
	}
	t.Logf("sizes without tests and generated code:\n%s", report.String())
}

func TestFoldersHaveNamesThatSaySomething(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for dir := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(f.path)), "/") {
			if slices.Contains([]string{"pkg", "util", "utils", "common", "helpers", "types"}, dir) {
				t.Errorf("%s: a folder named %q says nothing about what is in it", f.path, dir)
			}
		}
	}
}
