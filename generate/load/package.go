// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/steer-dev/steer/generate/markers"
)

// Package is a Go package, or for all but the roots the part of it that is needed.
type Package struct {
	Path, Name, Dir string
	Root            bool
	// Files of a root are all its files; of another package the parts of its
	// files that are needed.
	Files []*File
	// Types and Info are set by [Program.Check].
	Types *types.Package
	Info  *types.Info

	program *Program
	listed  *Listed
	sources []*source
	indices [2]map[string]location // of the types in written and in generated files
	types   map[string]*typeDecl
	imports map[string]*Package // by import path
	checked bool
}

// File is a parsed file or a part of one.
type File struct {
	*ast.File
	Path   string
	Source []byte

	imports map[string]*ast.ImportSpec // resolved so far, by the name used in this file
	used    map[*ast.ImportSpec]bool
	needed  []ast.Decl
	once    sync.Once
	markers *markers.File
}

// TypeDecl is the declaration of a type in the source.
type TypeDecl struct {
	Package *Package
	File    *File
	Decl    *ast.GenDecl
	Spec    *ast.TypeSpec
}

// Doc is the declaration's doc comment.
func (d *TypeDecl) Doc() *ast.CommentGroup {
	if d.Spec.Doc == nil && !d.Decl.Lparen.IsValid() {
		return d.Decl.Doc
	}
	return d.Spec.Doc
}

type typeDecl struct {
	TypeDecl
	needed bool
}

// source is a file of a package that is not a root: cut up, parsed where needed.
type source struct {
	path    string
	text    []byte
	outline *outline
	taken   map[int]bool   // sections parsed or about to be
	wanted  []int          // sections to parse next
	methods map[string]int // sections of the methods looked for, by "Receiver.Method"
}

// location is where a declaration is in a package that is not a root.
type location struct {
	source  *source
	section int
}

// Decls returns the type declarations of a root, in source order.
func (pkg *Package) Decls() []*TypeDecl {
	var all []*TypeDecl
	for _, file := range pkg.Files {
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
				for _, spec := range gen.Specs {
					all = append(all, &TypeDecl{Package: pkg, File: file, Decl: gen, Spec: spec.(*ast.TypeSpec)})
				}
			}
		}
	}
	return all
}

// Decl returns the declaration of a needed type, nil if there is none.
func (pkg *Package) Decl(name string) *TypeDecl {
	if decl := pkg.types[name]; decl != nil {
		return &decl.TypeDecl
	}
	return nil
}

// ImportPath returns the path that a name stands for in a file, "" if none.
func (pkg *Package) ImportPath(file *File, name string) string {
	pkg.program.loading.Lock()
	defer pkg.program.loading.Unlock()
	if spec := pkg.importSpec(file, name); spec != nil {
		imported, _ := strconv.Unquote(spec.Path.Value)
		return imported
	}
	return ""
}

// importSpec finds the import that a name stands for. Names are only known for
// sure once the imported package is read, so the likely candidates go first and
// the unlikely ones are only read when none of them fits.
func (pkg *Package) importSpec(file *File, name string) *ast.ImportSpec {
	if spec, known := file.imports[name]; known {
		return spec
	}
	var unlikely []*ast.ImportSpec
	var missing []error
	check := func(spec *ast.ImportSpec) bool {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if imported == "unsafe" {
			return name == "unsafe"
		}
		target, err := pkg.follow(imported)
		if err != nil {
			missing = append(missing, err)
			return false
		}
		return target.name() == name
	}
	for _, spec := range file.File.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case spec.Name != nil && spec.Name.Name == name:
			file.imports[name] = spec
			return spec
		case spec.Name != nil:
		case plausible(imported, name):
			if check(spec) {
				file.imports[name] = spec
				return spec
			}
		default:
			unlikely = append(unlikely, spec)
		}
	}
	for _, spec := range unlikely {
		if check(spec) {
			file.imports[name] = spec
			return spec
		}
	}
	file.imports[name] = nil
	pkg.program.missing = append(pkg.program.missing, missing...)
	return nil
}

// plausible reports whether a package at the path is likely to have the name.
func plausible(imported, name string) bool {
	base := path.Base(imported)
	if len(base) > 1 && base[0] == 'v' && base[1] >= '0' && base[1] <= '9' {
		return base == name || strings.Contains(path.Base(path.Dir(imported)), name)
	}
	return strings.Contains(base, name)
}

// Import returns the package that an import path means inside this one.
func (pkg *Package) Import(imported string) (*Package, error) {
	pkg.program.loading.Lock()
	defer pkg.program.loading.Unlock()
	return pkg.follow(imported)
}

func (pkg *Package) follow(imported string) (*Package, error) {
	if found := pkg.imports[imported]; found != nil {
		return found, nil
	}
	p := pkg.program
	if root := p.byPath[imported]; root != nil {
		pkg.imports[imported] = root
		return root, nil
	}
	listed, err := p.resolver.Import(imported, pkg.listed)
	if err != nil {
		return nil, err
	}
	found := p.add(listed)
	pkg.imports[imported] = found
	return found, nil
}

// Fset is the file set of the package's program.
func (pkg *Package) Fset() *token.FileSet { return pkg.program.Fset }

// GoName is the name in the package's package clause.
func (pkg *Package) GoName() string {
	pkg.program.loading.Lock()
	defer pkg.program.loading.Unlock()
	return pkg.name()
}

// name is the package's name as its first file states it.
func (pkg *Package) name() string {
	if pkg.Name == "" && len(pkg.listed.Files) > 0 {
		if head, err := readHead(pkg.listed.Files[0]); err == nil {
			pkg.Name = packageName(head)
		}
		if pkg.Name == "" {
			pkg.open()
		}
	}
	return pkg.Name
}

// open reads and cuts up the files of a package that is not a root.
func (pkg *Package) open() {
	if pkg.Root || pkg.sources != nil {
		return
	}
	for _, name := range pkg.listed.Files {
		text, err := os.ReadFile(name)
		if err != nil {
			pkg.program.problem(token.Position{Filename: name, Line: 1}, err.Error())
			continue
		}
		pkg.sources = append(pkg.sources, &source{path: name, text: text, taken: map[int]bool{}})
	}
	if pkg.Name == "" && len(pkg.sources) > 0 {
		if o := pkg.sources[0].cut(); o != nil {
			pkg.Name = o.name
		}
	}
}

// index returns where types are declared, in files that were written by hand or in
// generated ones. The latter are looked at last: they are long, and rarely declare
// types that an API reaches.
func (pkg *Package) index(generated bool) map[string]location {
	which := 0
	if generated {
		which = 1
	}
	if pkg.indices[which] == nil {
		index := map[string]location{}
		for _, s := range pkg.sources {
			if s.generated() != generated {
				continue
			}
			for i, sec := range s.cut().sections {
				if sec.kind == token.TYPE {
					for _, name := range sec.names {
						index[name] = location{s, i}
					}
				}
			}
		}
		pkg.indices[which] = index
	}
	return pkg.indices[which]
}

func (s *source) generated() bool {
	return bytes.Contains(s.text[:min(len(s.text), 4096)], []byte("DO NOT EDIT"))
}

// methodIndex returns where methods with the given names are declared. A file
// without any of them is not even cut up.
func (s *source) methodIndex(names []string) map[string]int {
	if s.methods == nil {
		s.methods = map[string]int{}
		for _, name := range names {
			if !bytes.Contains(s.text, []byte(") "+name+"(")) {
				continue
			}
			for i, sec := range s.cut().sections {
				if sec.kind == token.FUNC && sec.recv != "" && sec.names[0] == name {
					s.methods[sec.recv+"."+name] = i
				}
			}
		}
	}
	return s.methods
}

// cut outlines the file on first use.
func (s *source) cut() *outline {
	if s.outline == nil {
		o, err := outlineOf(s.text)
		if err != nil {
			o = parsedOutline(s.path, s.text)
		}
		s.outline = o
	}
	return s.outline
}
