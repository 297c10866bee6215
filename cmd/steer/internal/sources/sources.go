// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources reads the Go files of a project one by one, without their types: what a
// name means is told by the imports of its file.
package sources

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// File is one Go file.
type File struct {
	Fset   *token.FileSet
	Syntax *ast.File
	// Package is the path by which others import its package.
	Package string
}

// Walk calls f with all files of the module in dir but tests, in the order of their names.
// What does not parse is left out: it is the compiler's to report.
func Walk(dir, module string, f func(*File)) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != dir && !inModule(file, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		folder, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return err
		}
		f(&File{fset, syntax, path.Join(module, filepath.ToSlash(folder))})
		return nil
	})
}

// inModule reports whether a folder can have packages of the project's module.
func inModule(dir, name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "vendor" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err != nil
}

// At is the place of a node.
func (f *File) At(n ast.Node) token.Position { return f.Fset.Position(n.Pos()) }

// Imported is the path of the package that the file knows by a name; empty if there is
// none.
func (f *File) Imported(name string) string {
	for _, spec := range f.Syntax.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(importPath) == name {
			return importPath
		}
	}
	return ""
}

// Named returns the package and the name of a type, or of what it points to; both are empty
// for other types.
func (f *File) Named(of ast.Expr) (importPath, name string) {
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch of := of.(type) {
	case *ast.Ident:
		return f.Package, of.Name
	case *ast.SelectorExpr:
		if pkg, ok := of.X.(*ast.Ident); ok {
			return f.Imported(pkg.Name), of.Sel.Name
		}
	}
	return "", ""
}

// Member is the name in a package that an expression has; empty if it has another.
func (f *File) Member(importPath string, e ast.Expr) string {
	if selector, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := selector.X.(*ast.Ident); ok && f.Imported(pkg.Name) == importPath {
			return selector.Sel.Name
		}
	}
	return ""
}

// Second is the type of the second of some parameters, that behind the context; nil if there
// is none.
func Second(params *ast.FieldList) ast.Expr {
	n := 0
	for _, field := range params.List {
		if n += max(len(field.Names), 1); n >= 2 {
			return field.Type
		}
	}
	return nil
}

// Relative is FILE:LINE, with the file relative to dir.
func Relative(dir string, at token.Position) string {
	name, err := filepath.Rel(dir, at.Filename)
	if err != nil {
		name = at.Filename
	}
	return filepath.ToSlash(name) + ":" + strconv.Itoa(at.Line)
}
