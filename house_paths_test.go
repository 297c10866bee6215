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
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]*ast.File{}
	for _, f := range all {
		byPath[f.path] = f.syntax
	}
	linked := regexp.MustCompile("\\[`([a-z0-9_/.-]+\\.go):([A-Za-z0-9_.]+)`\\]\\(([^)]+)\\)")
	named := regexp.MustCompile("`[a-z0-9_/.-]+\\.go:[A-Za-z0-9_.]+`")
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text := readPaper(t, page)
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

// declares reports whether a file declares a function Func or a method Type.Func.
func declares(file *ast.File, name string) bool {
	receiver, method, isMethod := strings.Cut(name, ".")
	if !isMethod {
		receiver, method = "", name
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && fn.Name.Name == method && receiverOf(fn) == receiver {
			return true
		}
	}
	return false
}

// receiverOf is the name of the type of a method, empty for a function.
func receiverOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	return receiverName(fn.Recv.List[0].Type)
}
