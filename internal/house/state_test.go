// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bufio"
	"go/ast"
	"go/token"
	"os"
	"path"
	"strings"
	"testing"
)

func TestNoInitFunctions(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.generated() {
			continue // clientsets are generated in the form of code-generator's
		}
		for _, decl := range f.syntax.Decls {
			if name, ok := functionName(decl); ok && name == "init" {
				t.Errorf("%s has an init function: nothing may happen on import", f.path)
			}
		}
	}
}

// TestPackageLevelStateIsListed holds package-level variables to what cannot
// change: error sentinels, embedded files, pools, once-values, compiled
// patterns, interface assertions. Tables that Go cannot make constant stand in
// internal/house/testdata/variables.txt with the reason why they are safe.
func TestPackageLevelStateIsListed(t *testing.T) {
	t.Parallel()
	listed := readVariableList(t)
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "_test.go") || f.generated() {
			continue
		}
		for _, decl := range f.syntax.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				value := spec.(*ast.ValueSpec)
				for i, name := range value.Names {
					if harmless(gen, value, i) {
						continue
					}
					id := path.Join(path.Dir(f.path), name.Name)
					if _, ok := listed[id]; ok {
						delete(listed, id)
						continue
					}
					t.Errorf("%s: package-level variable %s: make it a value, or list it with its reason in internal/house/testdata/variables.txt as %q", f.path, name.Name, id)
				}
			}
		}
	}
	for id := range listed {
		t.Errorf("internal/house/testdata/variables.txt lists %s, which is gone: remove the line", id)
	}
}

func harmless(gen *ast.GenDecl, spec *ast.ValueSpec, i int) bool {
	if spec.Names[i].Name == "_" {
		return true
	}
	for _, doc := range []*ast.CommentGroup{gen.Doc, spec.Doc} {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	if typeName(spec.Type) == "sync.Pool" {
		return true
	}
	if len(spec.Values) != len(spec.Names) {
		return false
	}
	switch v := spec.Values[i].(type) {
	case *ast.CallExpr:
		switch typeName(v.Fun) {
		case "errors.New", "fmt.Errorf", "sync.OnceValue", "sync.OnceValues", "sync.OnceFunc", "regexp.MustCompile", "reflect.TypeFor", "crc32.MakeTable":
			return true
		}
	case *ast.CompositeLit:
		return typeName(v.Type) == "sync.Pool"
	}
	return false
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	case *ast.Ident:
		return e.Name
	case *ast.IndexExpr:
		return typeName(e.X)
	}
	return ""
}

// readVariableList reads lines of "folder/name: reason".
func readVariableList(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open("internal/house/testdata/variables.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, ok := strings.Cut(line, ": ")
		if !ok || reason == "" {
			t.Errorf("internal/house/testdata/variables.txt: %q gives no reason", line)
		}
		out[id] = reason
	}
	return out
}

// functionName returns the name of a top-level function that is not a method.
func functionName(decl ast.Decl) (string, bool) {
	fn, ok := decl.(*ast.FuncDecl)
	if !ok || fn.Recv != nil {
		return "", false
	}
	return fn.Name.Name, true
}
