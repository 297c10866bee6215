// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"go/ast"
	"slices"

	"github.com/steer-dev/steer/generate/markers"
)

// Markers returns the markers of a file as the program's collector sees them.
func (p *Program) Markers(file *File) *markers.File {
	file.once.Do(func() {
		file.markers = p.Collector.File(file.File)
		for _, problem := range file.markers.Problems {
			p.mu.Lock()
			p.marked = append(p.marked, Problem{
				Pos: p.Fset.Position(problem.Pos), Message: problem.Message, Lenient: problem.Lenient,
			})
			p.mu.Unlock()
		}
	})
	return file.markers
}

// PackageMarkers returns the package-level markers of all files of a package.
func (p *Program) PackageMarkers(pkg *Package) markers.Set {
	var set markers.Set
	for _, file := range pkg.Files {
		set = append(set, p.Markers(file).Package...)
	}
	return set
}

// TypeMarkers returns the markers of a type.
func (p *Program) TypeMarkers(decl *TypeDecl) markers.Set {
	return p.Markers(decl.File).Types[decl.Spec]
}

// FieldMarkers returns the markers of a field of a type.
func (p *Program) FieldMarkers(decl *TypeDecl, field *ast.Field) markers.Set {
	return p.Markers(decl.File).Fields[field]
}

// MarkerProblems returns the problems of the markers of the roots: those the
// grammar refuses and, if strict, those that nothing would ever have read.
func (p *Program) MarkerProblems(strict bool) []Problem {
	for _, pkg := range p.Roots {
		for _, file := range pkg.Files {
			p.Markers(file)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.marked), func(problem Problem) bool { return problem.Lenient && !strict })
}
