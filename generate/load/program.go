// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load reads Go packages as generators need them: the syntax of the
// packages asked for, and the types of exactly those declarations that something
// reaches.
//
// An ordinary operator imports a thousand packages; its API types reach a dozen.
// So nothing is loaded because it is imported, only because a needed type names
// it:
//
//  1. [Load] finds the root packages and parses them without function bodies.
//  2. The caller looks at them and calls [Program.Need] for the types it will ask
//     about; the program follows type expressions from there, cutting each file it
//     meets into declarations and parsing only the needed ones.
//  3. [Program.Check] gives what was gathered to go/types, so that every question
//     about types is answered by the language's own rules.
//
// Where packages lie is the business of a [Resolver].
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/steer-dev/steer/generate/markers"
)

// Program is a set of root packages and what their types reach. The methods of a
// program that has been checked are safe for concurrent use.
type Program struct {
	Fset  *token.FileSet
	Roots []*Package
	// Collector reads the markers; set it before the first question about them.
	Collector *markers.Collector
	// Dir is where relative names of other files start, such as headers; "" is
	// the working directory.
	Dir string

	resolver Resolver
	methods  []string
	byDir    map[string]*Package
	byPath   map[string]*Package // roots only: they win over other copies
	byTypes  map[*types.Package]*Package
	pending  []*typeDecl
	wanted   []reference // types whose sections are parsed next
	missing  []error     // imports that the resolver could not follow

	loading  sync.Mutex // held by the exported methods that may read packages
	mu       sync.Mutex // guards what follows
	problems []Problem
	marked   []Problem
}

// Problem is a mistake in the source, at its place.
type Problem struct {
	Pos     token.Position
	Message string
	// Lenient marks what other tools let pass.
	Lenient bool
	// Import is the path of a package that was not found; empty in other problems.
	Import string
}

func (p Problem) String() string {
	if !p.Pos.IsValid() {
		return p.Message
	}
	return p.Pos.String() + ": " + p.Message
}

// Load finds and parses the root packages. Methods are the names of the methods
// that the caller will look for on types; all others are left out. Mistakes in the
// source are recorded as problems, not returned.
func Load(ctx context.Context, resolver Resolver, patterns []string, methods ...string) (*Program, error) {
	p := &Program{
		Fset: token.NewFileSet(), resolver: resolver, methods: methods,
		byDir: map[string]*Package{}, byPath: map[string]*Package{}, byTypes: map[*types.Package]*Package{},
	}
	roots, err := resolver.Roots(ctx, patterns)
	if err != nil {
		return nil, err
	}
	for _, listed := range roots {
		if p.byDir[listed.Dir] != nil {
			continue
		}
		pkg := p.add(listed)
		pkg.Root = true
		p.byPath[listed.Path] = pkg
		p.Roots = append(p.Roots, pkg)
	}
	for _, pkg := range p.Roots {
		p.parseRoot(pkg)
	}
	return p, nil
}

// Problemf records a mistake at a position.
func (p *Program) Problemf(pos token.Pos, format string, args ...any) {
	p.problem(p.Fset.Position(pos), fmt.Sprintf(format, args...))
}

func (p *Program) problem(pos token.Position, message string) {
	p.record(Problem{Pos: pos, Message: message})
}

func (p *Program) record(problem Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, problem)
}

// Problems returns what was recorded so far, in source order, each once.
func (p *Program) Problems() []Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Sort(slices.Clone(p.problems))
}

// Sort puts problems into source order and drops repetitions.
func Sort(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Pos.Filename, b.Pos.Filename), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(problems)
}

// Packages returns every package that was touched, roots first, then by path.
func (p *Program) Packages() []*Package {
	all := slices.Clone(p.Roots)
	for _, pkg := range p.byDir {
		if !pkg.Root {
			all = append(all, pkg)
		}
	}
	slices.SortStableFunc(all[len(p.Roots):], func(a, b *Package) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Dir, b.Dir))
	})
	return all
}

// Inputs are the directories and files that the program was read from.
func (p *Program) Inputs() (dirs, files []string) {
	for _, pkg := range p.Packages() {
		dirs = append(dirs, pkg.Dir)
		files = append(files, pkg.listed.Files...)
	}
	return dirs, files
}

func (p *Program) add(listed *Listed) *Package {
	if pkg := p.byDir[listed.Dir]; pkg != nil {
		return pkg
	}
	pkg := &Package{Path: listed.Path, Dir: listed.Dir, program: p, listed: listed, types: map[string]*typeDecl{}, imports: map[string]*Package{}}
	p.byDir[listed.Dir] = pkg
	return pkg
}

func (p *Program) parseRoot(pkg *Package) {
	for _, name := range pkg.listed.Files {
		text, err := os.ReadFile(name)
		if err != nil {
			p.problem(token.Position{Filename: name, Line: 1}, err.Error())
			continue
		}
		blanked := text
		if o, err := outlineOf(text); err == nil {
			var bodies [][2]int
			for _, sec := range o.sections {
				if sec.body[1] > 0 {
					bodies = append(bodies, sec.body)
				}
			}
			blanked = blank(text, [][2]int{{0, len(text)}}, bodies)
			for _, m := range o.markers { // also those in bodies, to say that nothing reads them
				copy(blanked[m[0]:m[1]], text[m[0]:m[1]])
			}
		}
		if file := p.parse(pkg, name, blanked); file != nil {
			file.Source = text
		}
	}
}

// parse parses a file or what was left of it, and indexes its types.
func (p *Program) parse(pkg *Package, name string, text []byte) *File {
	parsed, err := parser.ParseFile(p.Fset, name, text, parser.ParseComments|parser.SkipObjectResolution|parser.AllErrors)
	if err != nil {
		if list := (scanner.ErrorList)(nil); errors.As(err, &list) {
			for _, e := range list {
				p.problem(e.Pos, e.Msg)
			}
		} else {
			p.problem(token.Position{Filename: name, Line: 1}, err.Error())
		}
		return nil
	}
	file := &File{File: parsed, Path: name, Source: text, imports: map[string]*ast.ImportSpec{}, used: map[*ast.ImportSpec]bool{}}
	if pkg.Name == "" {
		pkg.Name = parsed.Name.Name
	}
	pkg.Files = append(pkg.Files, file)
	for _, decl := range parsed.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
			for _, spec := range gen.Specs {
				spec := spec.(*ast.TypeSpec)
				pkg.types[spec.Name.Name] = &typeDecl{TypeDecl: TypeDecl{Package: pkg, File: file, Decl: gen, Spec: spec}}
			}
		}
	}
	return file
}

// Of returns the package that holds an object of the type checker.
func (p *Program) Of(pkg *types.Package, from *Package) *Package {
	if pkg == nil {
		return from
	}
	return p.byTypes[pkg]
}
