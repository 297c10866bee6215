// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package advice reads the defaulters and validators of a project, and says of each
// statement whether a marker of the kind, or an admission policy, could do it instead.
//
// It reads the source alone: comparisons of fields of the object with constants and with
// one another are understood, everything else needs code. A statement that it translates
// means the same; what it calls code may still be possible to say in CEL.
package advice

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// File is a Go file.
type File struct {
	// Package is the import path of its package.
	Package string
	Path    string
	Source  []byte
}

// program is what has been read.
type program struct {
	fset  *token.FileSet
	types map[string]map[string]*ast.TypeSpec // by import path and name
}

// Webhooks returns the advice on the methods Default, ValidateCreate, ValidateUpdate and
// ValidateDelete in the files, in their order; empty if there are none.
func Webhooks(files []File) (string, error) {
	p := &program{token.NewFileSet(), map[string]map[string]*ast.TypeSpec{}}
	parsed := make([]*ast.File, len(files))
	for i, f := range files {
		var err error
		if parsed[i], err = parser.ParseFile(p.fset, f.Path, f.Source, parser.SkipObjectResolution); err != nil {
			return "", err
		}
		if p.types[f.Package] == nil {
			p.types[f.Package] = map[string]*ast.TypeSpec{}
		}
		for _, decl := range parsed[i].Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				spec := spec.(*ast.TypeSpec)
				p.types[f.Package][spec.Name.Name] = spec
			}
		}
	}
	var out strings.Builder
	for i, file := range parsed {
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Body == nil {
				continue
			}
			if m := p.method(files[i].Package, file, fn); m != nil {
				m.read()
				m.write(&out)
			}
		}
	}
	return out.String(), nil
}

// method is a method of a defaulter or a validator.
type method struct {
	*program
	fn *ast.FuncDecl
	// params are the parameters with objects, and the variables that they are in CEL.
	params map[string]string
	// kind is the type of the objects; known says that it is in the files.
	kind  named
	known bool
	// errs are local variables that collect errors.
	errs  []string
	found []finding
}

// named is a type by its package and name.
type named struct{ pkg, name string }

type finding struct {
	line int
	text string
	code bool // it needs code
}

// parameters are the objects of a method behind the context, as variables of CEL; nil for
// other methods.
func parameters(method string) []string {
	switch method {
	case "Default", "ValidateCreate":
		return []string{"self"}
	case "ValidateUpdate":
		return []string{"oldSelf", "self"}
	case "ValidateDelete":
		return []string{"oldObject"}
	}
	return nil
}

// method returns nil for other functions.
func (p *program) method(pkg string, file *ast.File, fn *ast.FuncDecl) *method {
	variables := parameters(fn.Name.Name)
	if variables == nil {
		return nil
	}
	var names []string
	var types []ast.Expr
	for _, f := range fn.Type.Params.List {
		for _, name := range f.Names {
			names, types = append(names, name.Name), append(types, f.Type)
		}
	}
	if len(names) != len(variables)+1 {
		return nil
	}
	pointer, ok := types[1].(*ast.StarExpr)
	if !ok {
		return nil
	}
	m := &method{program: p, fn: fn, params: map[string]string{}, kind: p.name(pkg, file, pointer.X)}
	for i, variable := range variables {
		m.params[names[i+1]] = variable
	}
	_, m.known = p.types[m.kind.pkg][m.kind.name]
	return m
}

// name resolves the name of a type in a file.
func (p *program) name(pkg string, file *ast.File, typ ast.Expr) named {
	switch typ := typ.(type) {
	case *ast.Ident:
		return named{pkg, typ.Name}
	case *ast.SelectorExpr:
		at, _ := typ.X.(*ast.Ident)
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil || at == nil {
				continue
			}
			if spec.Name != nil && spec.Name.Name == at.Name || spec.Name == nil && path[strings.LastIndex(path, "/")+1:] == at.Name {
				return named{path, typ.Sel.Name}
			}
		}
	}
	return named{}
}

// read goes through the statements.
func (m *method) read() {
	for i, statement := range m.fn.Body.List {
		last := i == len(m.fn.Body.List)-1
		if !m.statement(statement, last) {
			m.code(statement)
		}
	}
}

func (m *method) add(at ast.Node, format string, args ...any) {
	m.found = append(m.found, finding{line: m.fset.Position(at.Pos()).Line, text: fmt.Sprintf(format, args...)})
}

// code says that a statement needs code, and why, as far as that shows.
func (m *method) code(statement ast.Stmt) {
	why := "needs code"
	ast.Inspect(statement, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if ok && (sel.Sel.Name == "Get" || sel.Sel.Name == "List") && len(call.Args) > 1 {
			why = "needs a webhook: it reads other objects"
		}
		return true
	})
	m.found = append(m.found, finding{m.fset.Position(statement.Pos()).Line, why, true})
}

// statement reports whether a statement is understood.
func (m *method) statement(statement ast.Stmt, last bool) bool {
	switch s := statement.(type) {
	case *ast.ReturnStmt:
		return last && m.returns(s)
	case *ast.DeclStmt:
		return m.collects(s)
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains([]string{"Info", "Debug", "V"}, sel.Sel.Name) // of a log
	case *ast.AssignStmt:
		return m.fn.Name.Name == "Default" && m.sets(s)
	case *ast.IfStmt:
		switch {
		case s.Init != nil || s.Else != nil:
			return false
		case m.fn.Name.Name == "Default":
			return m.defaults(s)
		case m.aboutErrors(s.Cond):
			return true
		}
		return m.denies(s)
	}
	return false
}

// returns reports whether a return decides nothing by itself.
func (m *method) returns(s *ast.ReturnStmt) bool {
	if len(s.Results) == 0 {
		return true
	}
	if result, ok := s.Results[len(s.Results)-1].(*ast.Ident); ok && result.Name == "nil" {
		return true
	}
	call, ok := s.Results[0].(*ast.CallExpr)
	if !ok {
		return len(s.Results) == 2 && m.aboutErrors(s.Results[1])
	}
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && parameters(sel.Sel.Name) != nil {
		m.add(s, "as %s", sel.Sel.Name)
		return true
	}
	return false
}

// collects takes the variable of a list of errors over.
func (m *method) collects(s *ast.DeclStmt) bool {
	gen := s.Decl.(*ast.GenDecl)
	if gen.Tok != token.VAR || len(gen.Specs) != 1 {
		return false
	}
	spec := gen.Specs[0].(*ast.ValueSpec)
	if spec.Type == nil || len(spec.Values) > 0 || !strings.Contains(strings.ToLower(text(spec.Type)), "err") {
		return false
	}
	for _, name := range spec.Names {
		m.errs = append(m.errs, name.Name)
	}
	return true
}

// aboutErrors reports whether an expression is about collected errors alone.
func (m *method) aboutErrors(e ast.Expr) bool {
	found, other := false, false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			found = found || slices.Contains(m.errs, id.Name)
			_, object := m.params[id.Name]
			other = other || object
		}
		return true
	})
	return found && !other
}

// write prints what was found.
func (m *method) write(out *strings.Builder) {
	receiver := text(m.fn.Recv.List[0].Type)
	at := m.fset.Position(m.fn.Pos())
	fmt.Fprintf(out, "%s:%d: %s.%s of %s\n", at.Filename, at.Line, strings.TrimPrefix(receiver, "*"), m.fn.Name.Name, m.kind.name)
	if !m.known {
		fmt.Fprintf(out, "  %s is not a type of these packages, and can have no markers: an admission policy compares its fields\n", m.kind.name)
	}
	code := 0
	for _, f := range m.found {
		fmt.Fprintf(out, "  line %d: %s\n", f.line, f.text)
		if f.code {
			code++
		}
	}
	switch {
	case len(m.found) == 0:
		out.WriteString("  does nothing\n")
	case code == 0:
		out.WriteString("  no statement needs code\n")
	}
}
