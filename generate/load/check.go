// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// Check type-checks what was needed. Mistakes in the roots are recorded as
// problems if report is set; those of other packages never are, since only parts of
// them were looked at. It fails with [ErrFallback] if the resolver did not
// understand an import on the way.
func (p *Program) Check(report bool) error {
	for _, pkg := range p.Packages() {
		p.check(pkg, report)
	}
	for _, err := range p.missing {
		if errors.Is(err, ErrFallback) {
			return err
		}
	}
	return nil
}

func (p *Program) check(pkg *Package, report bool) {
	if pkg.checked {
		return
	}
	pkg.checked = true
	pkg.Types = types.NewPackage(pkg.Path, pkg.name())
	pkg.Info = &types.Info{
		Types:     map[ast.Expr]types.TypeAndValue{},
		Defs:      map[*ast.Ident]types.Object{},
		Uses:      map[*ast.Ident]types.Object{},
		Instances: map[*ast.Ident]types.Instance{},
	}
	p.byTypes[pkg.Types] = pkg
	var files []*ast.File
	for _, file := range pkg.Files {
		if len(file.needed) == 0 {
			continue
		}
		part := *file.File
		part.Decls = nil
		for spec := range file.used {
			part.Decls = append(part.Decls, &ast.GenDecl{Tok: token.IMPORT, TokPos: spec.Pos(), Specs: []ast.Spec{spec}})
			imported, _ := strconv.Unquote(spec.Path.Value)
			if imported == "unsafe" {
				continue
			}
			target, err := pkg.follow(imported)
			if err != nil {
				if pkg.Root {
					p.record(Problem{Pos: p.Fset.Position(spec.Pos()), Message: fmt.Sprintf("cannot import %q: %v", imported, err), Import: imported})
				}
				continue
			}
			p.check(target, report)
		}
		part.Decls = append(part.Decls, file.needed...)
		files = append(files, &part)
	}
	config := &types.Config{
		IgnoreFuncBodies: true,
		Importer:         importer{pkg},
		Error: func(err error) {
			var typeErr types.Error
			if report && pkg.Root && errors.As(err, &typeErr) && !typeErr.Soft && !strings.HasPrefix(typeErr.Msg, "\t") {
				p.Problemf(typeErr.Pos, "%s", typeErr.Msg)
			}
		},
	}
	_ = types.NewChecker(config, p.Fset, pkg.Types, pkg.Info).Files(files) // every error went to Error
}

// importer hands the type checker the packages of the program.
type importer struct{ pkg *Package }

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	target := i.pkg.imports[path]
	if target == nil || target.Types == nil {
		return nil, fmt.Errorf("package %s was not loaded", path)
	}
	return target.Types, nil
}
