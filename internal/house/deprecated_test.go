// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestDeprecationsAreRewrittenByGoFix requires //go:fix inline of deprecated functions,
// types and constants, so that go fix moves callers to the successor.
func TestDeprecationsAreRewrittenByGoFix(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.generated() {
			continue
		}
		for _, name := range deprecatedWithoutFix(f.syntax) {
			t.Errorf("%s: %s is deprecated: write it in terms of its successor, and //go:fix inline above it", f.path, name)
		}
	}
}

// TestDeprecationsWithoutFixAreFound shows the check above what it looks for.
func TestDeprecationsWithoutFixAreFound(t *testing.T) {
	t.Parallel()
	const source = `package x

// Old is old.
//
// Deprecated: use New.
func Old() { New() }

// Older is older.
//
// Deprecated: use New.
//
//go:fix inline
func Older() { New() }

// Method is old.
//
// Deprecated: use New.
func (T) Method() { New() }

// A is old.
//
// Deprecated: use T.
type A = T

const (
	// B is old.
	//
	// Deprecated: use C.
	B = C
	// D is old.
	//
	// Deprecated: use C.
	//
	//go:fix inline
	D = C
)

// Errors of Deprecated: fields are none of this test.
func New() {}
`
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if got := deprecatedWithoutFix(file); !slices.Equal(got, []string{"Old", "Method", "A", "B"}) {
		t.Errorf("got %v", got)
	}
}

// deprecatedWithoutFix are the functions, types and constants of a file that are
// deprecated and that go fix does not rewrite.
func deprecatedWithoutFix(file *ast.File) (names []string) {
	check := func(name string, docs ...*ast.CommentGroup) {
		deprecated, fixed := false, false
		for _, doc := range docs {
			if doc == nil {
				continue
			}
			for _, comment := range doc.List {
				deprecated = deprecated || strings.HasPrefix(comment.Text, "// Deprecated: ")
				fixed = fixed || comment.Text == "//go:fix inline"
			}
		}
		if deprecated && !fixed {
			names = append(names, name)
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			check(d.Name.Name, d.Doc)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					check(s.Name.Name, d.Doc, s.Doc)
				case *ast.ValueSpec:
					if d.Tok == token.CONST {
						check(s.Names[0].Name, d.Doc, s.Doc)
					}
				}
			}
		}
	}
	return names
}
