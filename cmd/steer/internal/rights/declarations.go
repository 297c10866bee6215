// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"go/ast"
	"go/token"
	"slices"

	"github.com/steer-dev/steer/cmd/steer/internal/sources"
)

// use is what the package controller does with the kind of a type parameter.
type use struct {
	needed []string // without these verbs it does not work
	may    []string // further ones that it may use
}

// useOf is that of a name of the package controller, for its first type parameter; ok is
// false for names without one. Finalizers are put on and taken off by patches. Children are
// read, applied, which may create them, and deleted once they are not desired any more;
// Owns watches them.
func useOf(name string) (_ use, ok bool) {
	switch name {
	case "Owns", "Watches", "References", "Kind":
		return use{needed: []string{"list", "watch"}}, true
	case "Finalizer":
		return use{needed: []string{"patch"}}, true
	case "Children":
		return use{needed: []string{"get", "create", "patch", "delete"}, may: []string{"list", "watch"}}, true
	}
	return use{}, false
}

// parameter is the type of the object that a function takes: the second of its parameters,
// behind the context.
type parameter struct {
	in *fileOf
	of ast.Expr
}

// inference is a call whose type parameter is that of a function.
type inference struct {
	use      use
	function ast.Expr
	in       *fileOf
	at       token.Position
}

// member is the name in the package controller that an expression has; empty if it has
// another.
func (f *fileOf) member(e ast.Expr) string { return f.Member(controllerPackage, e) }

// explicit notes controller.Owns[T] and its like.
func (f *fileOf) explicit(function, of ast.Expr) {
	f.watched(f.member(function), of, f.At(function))
	if use, ok := useOf(f.member(function)); ok && !f.uses(use, of, f.At(function)) {
		f.unknown(use)
	}
}

// uses notes a use of the kind of a Go type, and reports whether the kind is known.
func (f *fileOf) uses(use use, of ast.Expr, at token.Position) bool {
	return f.declare(of, at, true, "", use.needed...) && f.declare(of, at, false, "", use.may...)
}

// unknown notes a use of kinds that the sources do not name, such as those of a mixed set
// of children.
func (s *Sources) unknown(use use) {
	for _, verb := range append(use.needed[:len(use.needed):len(use.needed)], use.may...) {
		s.open[verb] = true
	}
}

// call notes calls whose type parameter is inferred: controller.Finalizer(name, f), and
// controller.Watches(h) with a handler such as controller.Map(f).
func (f *fileOf) call(call *ast.CallExpr) {
	name := f.member(call.Fun)
	f.anyKind = f.anyKind || name == "OwnsKind"
	use, _ := useOf(name)
	at := f.At(call.Fun)
	switch {
	case name == "Finalizer" && len(call.Args) == 2:
		f.inferred = append(f.inferred, inference{use, call.Args[1], f, at})
	case name == "Watches" && len(call.Args) > 0:
		f.watches(use, call.Args[0], at)
	}
}

// watches notes the kind that a handler is for: one that controller.Map and its like make.
func (f *fileOf) watches(use use, handler ast.Expr, at token.Position) {
	if made, ok := handler.(*ast.CallExpr); ok {
		function, of := made.Fun, ast.Expr(nil)
		switch e := function.(type) {
		case *ast.IndexExpr:
			function, of = e.X, e.Index
		case *ast.IndexListExpr:
			function, of = e.X, e.Indices[0]
		}
		switch name := f.member(function); {
		case of != nil && name != "" && f.uses(use, of, at):
			return
		case of == nil && name == "Map" && len(made.Args) == 1:
			f.inferred = append(f.inferred, inference{use, made.Args[0], f, at})
			return
		}
	}
	f.unknown(use)
}

// function notes which object a function takes.
func (f *fileOf) function(function *ast.FuncDecl) {
	of := sources.Second(function.Type.Params)
	if of == nil {
		return
	}
	if name := function.Name.Name; function.Recv != nil {
		f.methods[name] = append(f.methods[name], parameter{f, of})
	} else {
		f.functions[f.Package+"."+name] = []parameter{{f, of}}
	}
}

// infer notes the calls whose type parameter is that of a function, which may be in
// another file.
func (s *Sources) infer() {
	for _, call := range s.inferred {
		known := false
		for _, takes := range call.in.taken(call.function) {
			known = takes.in.uses(call.use, takes.of, call.at) || known
		}
		if !known {
			s.unknown(call.use)
		}
	}
}

// taken is which object a function takes. A method is known by its name: all that have it
// count, those of the package before those of others.
func (f *fileOf) taken(function ast.Expr) []parameter {
	switch function := function.(type) {
	case *ast.FuncLit:
		if of := sources.Second(function.Type.Params); of != nil {
			return []parameter{{f, of}}
		}
	case *ast.Ident:
		return f.functions[f.Package+"."+function.Name]
	case *ast.SelectorExpr:
		if pkg, ok := function.X.(*ast.Ident); ok && f.Imported(pkg.Name) != "" {
			return f.functions[f.Imported(pkg.Name)+"."+function.Sel.Name]
		}
		methods := f.methods[function.Sel.Name]
		if own := slices.DeleteFunc(slices.Clone(methods), func(p parameter) bool { return p.in.Package != f.Package }); len(own) > 0 {
			return own
		}
		return methods
	}
	return nil
}
