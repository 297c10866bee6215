// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"go/ast"
	"go/token"
	"strings"

	"github.com/steer-dev/steer/cmd/steer/internal/sources"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/generate/rbac"
	"github.com/steer-dev/steer/scaffold/project"
)

const controllerPackage = "github.com/steer-dev/steer/controller"

// Sources are the Go files of a project, as far as they are about rights.
type Sources struct {
	dir      string
	project  *project.Project
	markers  []rbac.Located
	declared map[Right]declaration
	// reconcilers are where a marker of the reconciler of a kind belongs; "" is the first
	// of all.
	reconcilers map[string]token.Position
	// open are verbs that the code may use on kinds which the sources do not name.
	open map[string]bool

	// children are the first sets of children of a type, and follows the types
	// that controllers watch; anyKind: some watch kinds that the sources do not name.
	children map[goType]set
	follows  map[goType]bool
	anyKind  bool

	functions map[string][]parameter // by package path and name
	methods   map[string][]parameter // by name
	inferred  []inference
}

// declaration is what the code says about a right.
type declaration struct {
	place string // of the declaration
	// needed: nothing works without the right. Otherwise the controller may use it.
	needed bool
}

// Read reads the sources of a project.
func Read(ctx context.Context, dir string, p *project.Project) (*Sources, error) {
	request, err := generate.Parse(nil, generate.Steer)
	if err != nil {
		return nil, err
	}
	request.Dir = dir
	markers, err := request.Roles(ctx)
	if err != nil {
		return nil, err
	}
	s := &Sources{
		dir: dir, project: p, markers: markers, declared: map[Right]declaration{}, reconcilers: map[string]token.Position{}, open: map[string]bool{},
		children: map[goType]set{}, follows: map[goType]bool{},
		functions: map[string][]parameter{}, methods: map[string][]parameter{},
	}
	err = sources.Walk(dir, p.Repo, func(file *sources.File) { s.read(&fileOf{s, file}) })
	s.infer()
	return s, err
}

// read notes what one file declares.
func (s *Sources) read(f *fileOf) {
	for _, decl := range f.Syntax.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			f.function(function)
			f.reconciler(function)
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			f.explicit(n.X, n.Index)
		case *ast.IndexListExpr:
			f.explicit(n.X, n.Indices[0])
		case *ast.CallExpr:
			f.call(n)
		}
		return true
	})
}

// fileOf is one file.
type fileOf struct {
	*Sources
	*sources.File
}

// reconciler notes a method Reconcile of an object.
func (f *fileOf) reconciler(method *ast.FuncDecl) {
	if method.Name.Name != "Reconcile" || method.Recv == nil || len(method.Type.Params.List) < 2 {
		return
	}
	params := method.Type.Params.List
	_, kind := f.Named(params[len(params)-1].Type)
	at := f.At(method)
	for _, group := range f.Syntax.Comments {
		for _, comment := range group.List {
			if comment.Pos() < method.Pos() && strings.HasPrefix(strings.TrimLeft(comment.Text, "/ "), "+kubebuilder:rbac:") {
				at = f.At(comment)
				at.Line++ // below the last one
			}
		}
	}
	for _, key := range []string{kind, ""} {
		if _, ok := f.reconcilers[key]; !ok {
			f.reconcilers[key] = at
		}
	}
	of := params[len(params)-1].Type
	f.declare(of, at, true, "", "list", "watch")
	// Finalizers and the inventory of children are in the metadata.
	f.declare(of, at, false, "", "get", "patch")
	f.declare(of, at, false, "/status", "patch")
	for _, verb := range []string{"create", "patch"} {
		f.add(Right{"events.k8s.io", "events", verb}, declaration{f.place(at), false})
	}
}

// declare notes rights on the kind of a Go type, and reports whether the kind is known.
func (f *fileOf) declare(of ast.Expr, at token.Position, needed bool, subresource string, verbs ...string) bool {
	importPath, kind := f.Named(of)
	group, resource, ok := f.project.ResourceOf(importPath, kind)
	if !ok {
		return false
	}
	for _, verb := range verbs {
		f.add(Right{group, resource + subresource, verb}, declaration{f.place(at), needed})
	}
	return true
}

func (s *Sources) add(right Right, d declaration) {
	if was, ok := s.declared[right]; !ok || d.needed && !was.needed {
		s.declared[right] = d
	}
}

// place is FILE:LINE, with the file relative to the project.
func (s *Sources) place(at token.Position) string { return sources.Relative(s.dir, at) }

// Place is where a marker for the reconciler of a kind belongs: FILE:LINE, or nothing
// if the project has no reconcilers.
func (s *Sources) Place(kind string) string {
	at, ok := s.reconcilers[kind]
	if !ok {
		at, ok = s.reconcilers[""]
	}
	if !ok {
		return ""
	}
	return s.place(at)
}
