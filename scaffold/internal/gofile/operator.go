// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gofile

import (
	"go/ast"
	"go/token"
	"slices"
)

// setup is the function that the field Setup of the operator names.
type setup struct {
	body    *ast.BlockStmt
	manager string // the name of its parameter
}

// setup finds the function in which controllers and webhooks are added; nil if the
// file has none in a form that is known.
func (s *File) setup() *setup {
	operator := s.Literal("steer.Operator")
	if operator == nil {
		return nil
	}
	for _, e := range operator.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok || s.Text(field.Key) != "Setup" {
			continue
		}
		switch value := field.Value.(type) {
		case *ast.FuncLit:
			return setupOf(value.Type, value.Body)
		case *ast.Ident:
			for _, decl := range s.file.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == value.Name {
					return setupOf(fn.Type, fn.Body)
				}
			}
		}
	}
	return nil
}

func setupOf(typ *ast.FuncType, body *ast.BlockStmt) *setup {
	params := typ.Params.List
	if len(params) == 0 {
		return nil
	}
	last := params[len(params)-1]
	if len(last.Names) == 0 || last.Names[len(last.Names)-1].Name == "_" {
		return nil
	}
	return &setup{body: body, manager: last.Names[len(last.Names)-1].Name}
}

// AddSetup adds a call to the setup of the operator: to the errors that it joins if
// it ends so, in front of its last return otherwise. It reports whether there is one.
func (s *File) AddSetup(call func(manager string) string) (bool, error) {
	setup := s.setup()
	if setup == nil || len(setup.body.List) == 0 {
		return false, nil
	}
	last, ok := setup.body.List[len(setup.body.List)-1].(*ast.ReturnStmt)
	if !ok {
		return false, nil
	}
	if join := s.Call(last, "errors.Join"); join != nil && len(last.Results) == 1 && last.Results[0] == ast.Expr(join) {
		return true, s.AppendTo(join.Args, join.Lparen, join.Rparen, call(setup.manager))
	}
	at := s.offset(last.Pos())
	return true, s.splice(at, at, "if err := "+call(setup.manager)+"; err != nil {\nreturn err\n}\n")
}

// RemoveSetup removes a call from the setup of the operator, in one of the two forms
// in which addSetup writes it, and reports whether it was there.
func (s *File) RemoveSetup(match func(*ast.CallExpr) bool) (bool, error) {
	setup := s.setup()
	if setup == nil {
		return false, nil
	}
	for _, stmt := range setup.body.List {
		if check, ok := stmt.(*ast.IfStmt); ok && check.Else == nil {
			assign, ok := check.Init.(*ast.AssignStmt)
			if !ok || assign.Tok != token.DEFINE || len(assign.Rhs) != 1 {
				continue
			}
			if call, ok := assign.Rhs[0].(*ast.CallExpr); ok && match(call) {
				return true, s.CutLine(check)
			}
		}
	}
	join := s.Call(setup.body, "errors.Join")
	if join == nil {
		return false, nil
	}
	i := slices.IndexFunc(join.Args, func(arg ast.Expr) bool {
		call, ok := arg.(*ast.CallExpr)
		return ok && match(call)
	})
	if i < 0 {
		return false, nil
	}
	return true, s.RemoveFrom(join.Args[i])
}

// SetsUp matches the call of SetupWithManager on a literal of a type, whatever its
// fields are.
func (s *File) SetsUp(typ string) func(*ast.CallExpr) bool {
	return func(call *ast.CallExpr) bool {
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "SetupWithManager" {
			return false
		}
		found := false
		ast.Inspect(sel.X, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			found = found || ok && lit.Type != nil && s.Text(lit.Type) == typ
			return !found
		})
		return found
	}
}

// Register makes AddToScheme of an API package register kinds, and reports whether
// it calls AddKnownTypes.
func (s *File) Register(kinds ...string) (bool, error) {
	for _, kind := range kinds {
		call := s.Call(s.file, ".AddKnownTypes")
		if call == nil || len(call.Args) == 0 {
			return false, nil
		}
		text := "&" + kind + "{}"
		if slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return s.Text(e) == text }) {
			continue
		}
		if err := s.AppendTo(call.Args, call.Lparen, call.Rparen, text); err != nil {
			return true, err
		}
	}
	return true, nil
}

// Unregister undoes it.
func (s *File) Unregister(kinds ...string) error {
	for _, kind := range kinds {
		call := s.Call(s.file, ".AddKnownTypes")
		if call == nil {
			return nil
		}
		i := slices.IndexFunc(call.Args, func(e ast.Expr) bool { return s.Text(e) == "&"+kind+"{}" })
		if i >= 0 {
			if err := s.RemoveFrom(call.Args[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
