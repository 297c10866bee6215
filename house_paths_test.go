// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// TestPathsNameFunctionsThatExist checks the links of the form
// [`file.go:Func`](file.go) of the pages for contributors.
func TestPathsNameFunctionsThatExist(t *testing.T) {
	t.Parallel()
	byPath := filesByPath(t)
	linked := regexp.MustCompile("\\[`([a-z0-9_/.-]+\\.go):([A-Za-z0-9_.]+)`\\]\\(([^)]+)\\)")
	named := regexp.MustCompile("`[a-z0-9_/.-]+\\.go:[A-Za-z0-9_.]+`")
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/inside.md"} {
		// Links are relative to the page.
		text := strings.ReplaceAll(readPaper(t, page), "]("+strings.Repeat("../", strings.Count(page, "/")), "](")
		links := linked.FindAllStringSubmatch(text, -1)
		if len(links) == 0 {
			t.Errorf("%s names no function", page)
		}
		if names := named.FindAllString(text, -1); len(names) != len(links) {
			t.Errorf("%s names %d functions of files, of which %d are links to them", page, len(names), len(links))
		}
		for _, m := range links {
			switch file := byPath[m[1]]; {
			case m[1] != m[3]:
				t.Errorf("%s: the link of %s leads to %s", page, m[1], m[3])
			case file == nil:
				t.Errorf("%s names %s, which does not exist", page, m[1])
			case !declares(file, m[2]):
				t.Errorf("%s names %s, which %s does not declare", page, m[2], m[1])
			}
		}
	}
}

func filesByPath(t *testing.T) map[string]*ast.File {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]*ast.File{}
	for _, f := range all {
		byPath[f.path] = f.syntax
	}
	return byPath
}

// TestWalkOfATableEventFollowsTheCalls checks the table of docs/inside.md that names
// every function between the commit of a write and the bytes of its event: the files
// declare them, and each is called by one above it.
func TestWalkOfATableEventFollowsTheCalls(t *testing.T) {
	t.Parallel()
	const most = 19 // files, half of what a reader had to open before there was a walk
	_, section, found := strings.Cut(readPaper(t, "docs/inside.md"), "\n## One event of a watch of tables, call by call\n")
	if !found {
		t.Fatal("docs/inside.md has no walk of an event")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	begin := map[string]bool{"Memory.Commit": true, "Server.Serve": true}
	byPath, opened, called, functions := filesByPath(t), map[string]bool{}, map[string]bool{}, 0
	inFile := regexp.MustCompile("\\[([a-z0-9_/.-]+\\.go)\\]\\(([^)]+)\\): ((?:`[A-Za-z.]+`(?:, )?)+)")
	for _, m := range inFile.FindAllStringSubmatch(section, -1) {
		path, file := m[1], byPath[m[1]]
		if file == nil || m[2] != "../"+path {
			t.Fatalf("the walk names %s, linked to %s", path, m[2])
		}
		opened[path] = true
		for name := range strings.SplitSeq(m[3], ", ") {
			functions++
			name = strings.Trim(name, "`")
			fn := declaration(file, name)
			if fn == nil {
				t.Errorf("the walk names %s, which %s does not declare", name, path)
				continue
			}
			if !called[fn.Name.Name] && !begin[name] {
				t.Errorf("%s is called by none of the functions above it", name)
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					called[id.Name] = true
				}
				return true
			})
		}
	}
	if functions < 30 || len(opened) > most {
		t.Errorf("the walk names %d functions of %d files, want at least 30 of at most %d", functions, len(opened), most)
	}
}

// declares reports whether a file declares a function Func or a method Type.Func.
func declares(file *ast.File, name string) bool { return declaration(file, name) != nil }

func declaration(file *ast.File, name string) *ast.FuncDecl {
	receiver, method, isMethod := strings.Cut(name, ".")
	if !isMethod {
		receiver, method = "", name
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && fn.Name.Name == method && receiverOf(fn) == receiver {
			return fn
		}
	}
	return nil
}

// receiverOf is the name of the type of a method, empty for a function.
func receiverOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	return receiverName(fn.Recv.List[0].Type)
}
