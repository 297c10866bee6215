// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

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
		functions: map[string][]parameter{}, methods: map[string][]parameter{},
	}
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != dir && !ours(file, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		return s.read(file)
	})
	s.infer()
	return s, err
}

// ours reports whether a folder can have packages of the project's module.
func ours(dir, name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "vendor" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err != nil
}

// read notes what one file declares. What does not parse is the compiler's to report.
func (s *Sources) read(name string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	folder, err := filepath.Rel(s.dir, filepath.Dir(name))
	if err != nil {
		return err
	}
	f := &fileOf{s, fset, file, path.Join(s.project.Repo, filepath.ToSlash(folder))}
	for _, decl := range file.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			f.function(function)
			f.reconciler(function)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
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
	return nil
}

// fileOf is one file.
type fileOf struct {
	*Sources
	fset    *token.FileSet
	file    *ast.File
	pkgPath string
}

// reconciler notes a method Reconcile of an object.
func (f *fileOf) reconciler(method *ast.FuncDecl) {
	if method.Name.Name != "Reconcile" || method.Recv == nil || len(method.Type.Params.List) < 2 {
		return
	}
	params := method.Type.Params.List
	_, kind := f.named(params[len(params)-1].Type)
	at := f.fset.Position(method.Pos())
	for _, group := range f.file.Comments {
		for _, comment := range group.List {
			if comment.Pos() < method.Pos() && strings.HasPrefix(strings.TrimLeft(comment.Text, "/ "), "+kubebuilder:rbac:") {
				at = f.fset.Position(comment.Pos())
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
	importPath, kind := f.named(of)
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

// named returns the package and the name of a type, or of what it points to.
func (f *fileOf) named(of ast.Expr) (importPath, name string) {
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch of := of.(type) {
	case *ast.Ident:
		return f.pkgPath, of.Name
	case *ast.SelectorExpr:
		if pkg, ok := of.X.(*ast.Ident); ok {
			return f.imported(pkg.Name), of.Sel.Name
		}
	}
	return "", ""
}

// imported is the path of the package that the file knows by a name.
func (f *fileOf) imported(name string) string {
	for _, spec := range f.file.Imports {
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

// place is FILE:LINE, with the file relative to the project.
func (s *Sources) place(at token.Position) string {
	name, err := filepath.Rel(s.dir, at.Filename)
	if err != nil {
		name = at.Filename
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(name), at.Line)
}

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
