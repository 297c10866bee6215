// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// surface lists what a Go file declares for others: exported functions, methods,
// types with their exported fields and methods, variables and constants. Names of
// parameters are left out and packages are written by their paths, so that two
// files with the same surface can be used for each other.
func surface(t *testing.T, name string, text []byte) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s := &surfaceOf{imports: map[string]string{}, prefix: path.Dir(name) + ": "}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		base := path.Base(imported)
		if spec.Name != nil {
			base = spec.Name.Name
		}
		s.imports[base] = imported
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			s.function(decl)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					s.typ(spec)
				case *ast.ValueSpec:
					for _, ident := range spec.Names {
						if ident.IsExported() {
							s.add("%s %s", decl.Tok, ident.Name)
						}
					}
				}
			}
		}
	}
	return s.lines
}

type surfaceOf struct {
	imports map[string]string
	prefix  string
	lines   []string
}

func (s *surfaceOf) add(format string, args ...any) {
	s.lines = append(s.lines, s.prefix+fmt.Sprintf(format, args...))
}

func (s *surfaceOf) function(decl *ast.FuncDecl) {
	if !decl.Name.IsExported() {
		return
	}
	name := decl.Name.Name
	if decl.Recv != nil {
		recv := strings.TrimPrefix(s.expr(decl.Recv.List[0].Type), "*")
		if !ast.IsExported(recv) {
			return // seen through the interface that it implements
		}
		name = recv + "." + name
	}
	s.add("func %s%s", name, s.signature(decl.Type))
}

func (s *surfaceOf) typ(spec *ast.TypeSpec) {
	if !spec.Name.IsExported() {
		return
	}
	switch x := spec.Type.(type) {
	case *ast.StructType:
		s.add("type %s struct", spec.Name.Name)
		s.members(spec.Name.Name, x.Fields)
	case *ast.InterfaceType:
		s.add("type %s interface", spec.Name.Name)
		s.members(spec.Name.Name, x.Methods)
	default:
		s.add("type %s %s", spec.Name.Name, s.expr(spec.Type))
	}
}

func (s *surfaceOf) members(of string, list *ast.FieldList) {
	for _, field := range list.List {
		if len(field.Names) == 0 {
			if embedded := s.expr(field.Type); ast.IsExported(strings.TrimPrefix(embedded[strings.LastIndex(embedded, ".")+1:], "*")) {
				s.add("%s embeds %s", of, embedded)
			}
			continue
		}
		for _, name := range field.Names {
			if !name.IsExported() {
				continue
			}
			if method, ok := field.Type.(*ast.FuncType); ok {
				s.add("%s.%s%s", of, name.Name, s.signature(method))
			} else {
				s.add("%s.%s %s", of, name.Name, s.expr(field.Type))
			}
		}
	}
}

func (s *surfaceOf) signature(f *ast.FuncType) string {
	list := func(fields *ast.FieldList) string {
		var all []string
		if fields != nil {
			for _, field := range fields.List {
				for range max(len(field.Names), 1) {
					all = append(all, s.expr(field.Type))
				}
			}
		}
		return "(" + strings.Join(all, ", ") + ")"
	}
	return list(f.Params) + " " + list(f.Results)
}

func (s *surfaceOf) expr(expr ast.Expr) string {
	switch x := expr.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		if pkg, ok := x.X.(*ast.Ident); ok && s.imports[pkg.Name] != "" {
			return s.imports[pkg.Name] + "." + x.Sel.Name
		}
		return s.expr(x.X) + "." + x.Sel.Name
	case *ast.StarExpr:
		return "*" + s.expr(x.X)
	case *ast.ArrayType:
		return "[]" + s.expr(x.Elt)
	case *ast.MapType:
		return "map[" + s.expr(x.Key) + "]" + s.expr(x.Value)
	case *ast.Ellipsis:
		return "..." + s.expr(x.Elt)
	case *ast.ChanType:
		return "chan " + s.expr(x.Value)
	case *ast.FuncType:
		return "func" + s.signature(x)
	case *ast.IndexExpr:
		return s.expr(x.X) + "[" + s.expr(x.Index) + "]"
	case *ast.IndexListExpr:
		var all []string
		for _, index := range x.Indices {
			all = append(all, s.expr(index))
		}
		return s.expr(x.X) + "[" + strings.Join(all, ", ") + "]"
	case *ast.StructType:
		return "struct"
	case *ast.InterfaceType:
		return "interface"
	}
	return fmt.Sprintf("%T", expr)
}
