// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gofile

import (
	"go/ast"
	"go/token"
)

// Field is a field of a struct type.
type Field struct {
	Name, Type string
	// Local: its type is, or has a part, of the same package.
	Local bool
}

// fields are those of a struct type of the file, without embedded ones; nil if there is
// no such type.
func (s *File) fields(typ string) (out []Field) {
	for _, decl := range s.file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.TypeSpec)
			body, ok := spec.Type.(*ast.StructType)
			if !ok || spec.Name.Name != typ {
				continue
			}
			for _, f := range body.Fields.List {
				for _, name := range f.Names {
					out = append(out, Field{name.Name, s.Text(f.Type), isLocal(f.Type)})
				}
			}
		}
	}
	return out
}

// isLocal reports whether a type has a name without a package that is not one of Go's own.
func isLocal(typ ast.Expr) (local bool) {
	ast.Inspect(typ, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false
		case *ast.Ident:
			local = local || ast.IsExported(n.Name)
		}
		return true
	})
	return local
}
