// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
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

// TestWalksFollowTheCalls checks the tables of docs/inside.md that name every function of a way
// through the code: the files declare them, and each is called by one above it.
func TestWalksFollowTheCalls(t *testing.T) {
	t.Parallel()
	for heading, walk := range map[string]struct {
		begin       []string // are called by none
		least, most int      // functions that are named, and files that are opened
	}{
		// Half of what a reader had to open before there was a walk.
		"One event of a watch of tables, call by call":        {[]string{"Memory.Commit", "Server.Serve"}, 30, 19},
		"A creation of a custom object, function by function": {[]string{"Handler.create"}, 30, 15},
	} {
		byPath, called, opened, functions := filesByPath(t), map[string]bool{}, map[string]bool{}, 0
		for _, named := range functionsOf(t, heading) {
			functions++
			opened[named.path] = true
			fn := declaration(byPath[named.path], named.name)
			if fn == nil {
				t.Errorf("%s names %s, which %s does not declare", heading, named.name, named.path)
				continue
			}
			if !called[fn.Name.Name] && !slices.Contains(walk.begin, named.name) {
				t.Errorf("%s: %s is called by none of the functions above it", heading, named.name)
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					called[id.Name] = true
				}
				return true
			})
		}
		if functions < walk.least || len(opened) > walk.most {
			t.Errorf("%s names %d functions of %d files, want at least %d of at most %d", heading, functions, len(opened), walk.least, walk.most)
		}
	}
}

// place is a function of a file.
type place struct{ path, name string }

// functionsOf returns the functions that a section of docs/inside.md names, with their files.
func functionsOf(t *testing.T, heading string) (out []place) {
	t.Helper()
	byPath := filesByPath(t)
	inFile := regexp.MustCompile("\\[([a-z0-9_/.-]+\\.go)\\]\\(([^)]+)\\): ((?:`[A-Za-z.]+`(?:, )?)+)")
	for _, m := range inFile.FindAllStringSubmatch(sectionOf(t, heading), -1) {
		if byPath[m[1]] == nil || m[2] != "../"+m[1] {
			t.Fatalf("%s names %s, linked to %s", heading, m[1], m[2])
		}
		for name := range strings.SplitSeq(m[3], ", ") {
			out = append(out, place{m[1], strings.Trim(name, "`")})
		}
	}
	return out
}

// sectionOf returns a section of docs/inside.md.
func sectionOf(t *testing.T, heading string) string {
	t.Helper()
	_, section, found := strings.Cut(readPaper(t, "docs/inside.md"), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/inside.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// TestFormsOfAWriteAreListed holds the table of docs/inside.md of the forms of an object
// to the code: a function that makes one form of another, in the packages that every write
// passes, is in the table, and no verb has more forms than it may have.
func TestFormsOfAWriteAreListed(t *testing.T) {
	t.Parallel()
	const heading = "Forms of an object in a write"
	most := map[string][2]int{"create": {3, 3}, "update": {3, 4}, "patch": {3, 4}, "apply": {3, 4}}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z]+) \| (the text [^|]+) \| (the text [^|]+) \|$`).FindAllStringSubmatch(sectionOf(t, heading), -1) {
		for i, of := range row[2:] {
			if forms := strings.Count(of, ", ") + 1; forms > most[row[1]][i] {
				t.Errorf("%s has %d forms, %d are allowed: %s", row[1], forms, most[row[1]][i], of)
			}
		}
		delete(most, row[1])
	}
	for verb := range most {
		t.Errorf("docs/inside.md does not tell the forms of %s", verb)
	}
	listed := functionsOf(t, heading)
	for file, syntax := range filesByPath(t) {
		if folder := path.Dir(file); strings.HasSuffix(file, "_test.go") || !slices.Contains([]string{"body", "endpoint", "genname", "objectmeta", "registry"}, path.Base(folder)) || path.Dir(folder) != "apiserver/internal" {
			continue
		}
		for _, decl := range syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			here := place{file, nameOf(fn)}
			if makes, is := makesForm(fn), slices.Contains(listed, here); makes != is {
				t.Errorf("%s:%s makes a form of an object of another: %t; docs/inside.md lists it: %t", file, here.name, makes, is)
			}
		}
	}
}

// makesForm reports whether a function calls one that makes a form of an object of another.
func makesForm(fn *ast.FuncDecl) (makes bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if of, ok := call.Fun.(*ast.SelectorExpr); ok {
			from, _ := of.X.(*ast.Ident)
			switch of.Sel.Name {
			case "Content":
				makes = makes || from == nil || from.Name != "wire" // which is that of an envelope
			case "SetContent", "NewDoc", "ParseDoc", "ParseFast", "MarshalJSON", "EncodeObject":
				makes = true
			}
		}
		return true
	})
	return makes
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
