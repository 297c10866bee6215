// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
)

// reference is a name in a package.
type reference struct {
	pkg  *Package
	name string
}

// Need asks for the types with the names, in a root, and for all that they reach.
func (p *Program) Need(pkg *Package, names ...string) {
	for _, name := range names {
		p.need(pkg, name)
	}
	p.reach()
}

// reach follows the needed types until nothing new turns up.
func (p *Program) reach() {
	for len(p.pending)+len(p.wanted) > 0 {
		for len(p.pending) > 0 {
			decl := p.pending[len(p.pending)-1]
			p.pending = p.pending[:len(p.pending)-1]
			r := &references{program: p, pkg: decl.Package, file: decl.File}
			r.params(decl.Spec.TypeParams)
			r.expr(decl.Spec.Type)
			p.methodsOf(decl.Package, decl.Spec.Name.Name)
			if isEnum(decl) {
				p.constantsOf(decl.Package, decl.Spec.Name.Name)
			}
		}
		for _, pkg := range p.Packages() {
			p.parseWanted(pkg)
		}
		wanted := p.wanted
		p.wanted = nil
		for _, ref := range wanted {
			if ref.pkg.types[ref.name] != nil {
				p.need(ref.pkg, ref.name)
			}
		}
	}
}

// need marks a type, or whatever else a name in a package turns out to be.
func (p *Program) need(pkg *Package, name string) {
	if decl := pkg.types[name]; decl != nil {
		if !decl.needed {
			decl.needed = true
			p.keepType(decl)
			p.pending = append(p.pending, decl)
		}
		return
	}
	if pkg.Root {
		p.needConst(pkg, name)
		return
	}
	if !ast.IsExported(name) && types.Universe.Lookup(name) != nil {
		return
	}
	pkg.open()
	for _, generated := range []bool{false, true} {
		if at, ok := pkg.index(generated)[name]; ok {
			at.source.want(at.section)
			p.wanted = append(p.wanted, reference{pkg, name})
			return
		}
	}
	p.needConst(pkg, name)
}

// needConst marks the constants of a package when a type uses one of them, as the
// length of an array does. Which of them cannot be told without parsing, and they
// are few.
func (p *Program) needConst(pkg *Package, name string) {
	if !ast.IsExported(name) && types.Universe.Lookup(name) != nil {
		return
	}
	if pkg.Root {
		for _, file := range pkg.Files {
			for _, decl := range file.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if ok && (gen.Tok == token.CONST || gen.Tok == token.VAR) && declares(gen, name) {
					p.keep(pkg, file, gen)
				}
			}
		}
		return
	}
	for _, s := range pkg.sources {
		if !bytes.Contains(s.text, []byte(name)) {
			continue
		}
		for i, sec := range s.cut().sections {
			if (sec.kind == token.CONST || sec.kind == token.VAR) && bytes.Contains(s.text[sec.at:sec.end], []byte(name)) {
				s.want(i)
			}
		}
	}
}

// isEnum reports whether a type's comment asks for the constants of the type.
func isEnum(decl *typeDecl) bool {
	if _, basic := decl.Spec.Type.(*ast.Ident); !basic {
		return false
	}
	for _, group := range decl.File.Comments {
		if group.Pos() < decl.Decl.Pos() {
			for _, comment := range group.List {
				if bytes.Contains([]byte(comment.Text), []byte("+k8s:enum")) {
					return true
				}
			}
		}
	}
	return false
}

// constantsOf keeps the constant declarations that mention a type.
func (p *Program) constantsOf(pkg *Package, name string) {
	if pkg.Root {
		for _, file := range pkg.Files {
			for _, decl := range file.Decls {
				if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.CONST && mentions(gen, name) {
					p.keep(pkg, file, gen)
				}
			}
		}
		return
	}
	for _, s := range pkg.sources {
		for i, sec := range s.cut().sections {
			if sec.kind == token.CONST && bytes.Contains(s.text[sec.at:sec.end], []byte(name)) {
				s.want(i)
			}
		}
	}
}

func mentions(gen *ast.GenDecl, name string) bool {
	for _, spec := range gen.Specs {
		if value, ok := spec.(*ast.ValueSpec); ok {
			if ident, ok := value.Type.(*ast.Ident); ok && ident.Name == name {
				return true
			}
		}
	}
	return false
}

func declares(gen *ast.GenDecl, name string) bool {
	for _, spec := range gen.Specs {
		if value, ok := spec.(*ast.ValueSpec); ok {
			for _, ident := range value.Names {
				if ident.Name == name {
					return true
				}
			}
		}
	}
	return false
}

func (s *source) want(section int) {
	if !s.taken[section] {
		s.taken[section] = true
		s.wanted = append(s.wanted, section)
	}
}

// parseWanted parses the sections of a package's files that became needed.
func (p *Program) parseWanted(pkg *Package) {
	for _, s := range pkg.sources {
		if len(s.wanted) == 0 {
			continue
		}
		slices.Sort(s.wanted)
		keep := [][2]int{{0, s.outline.header}}
		var bodies [][2]int
		for i, sec := range s.outline.sections {
			if sec.kind == token.IMPORT {
				keep = append(keep, [2]int{sec.start, sec.end})
			} else if slices.Contains(s.wanted, i) {
				keep = append(keep, [2]int{sec.start, sec.end})
				if sec.body[1] > 0 {
					bodies = append(bodies, sec.body)
				}
			}
		}
		s.wanted = nil
		file := p.parse(pkg, s.path, blank(s.text, keep, bodies))
		if file == nil {
			continue
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				p.keep(pkg, file, decl)
			case *ast.GenDecl:
				if decl.Tok == token.CONST || decl.Tok == token.VAR {
					p.keep(pkg, file, decl)
				}
			}
		}
	}
}

// keepType puts a needed type into what the type checker sees.
func (p *Program) keepType(decl *typeDecl) {
	one := *decl.Decl
	one.Specs = []ast.Spec{decl.Spec}
	decl.File.needed = append(decl.File.needed, &one)
}

// keep puts a function or a value declaration into what the type checker sees.
func (p *Program) keep(pkg *Package, file *File, decl ast.Decl) {
	if slices.Contains(file.needed, decl) {
		return
	}
	file.needed = append(file.needed, decl)
	r := &references{program: p, pkg: pkg, file: file}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		r.params(decl.Recv)
		r.expr(decl.Type)
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok {
				r.expr(value.Type)
				for _, v := range value.Values {
					r.expr(v)
				}
			}
		}
	}
}

// methodsOf keeps those methods of a type that the program was told to look for.
func (p *Program) methodsOf(pkg *Package, receiver string) {
	if pkg.Root {
		for _, file := range pkg.Files {
			for _, decl := range file.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if ok && fn.Recv != nil && slices.Contains(p.methods, fn.Name.Name) && receiverName(fn) == receiver {
					p.keep(pkg, file, fn)
				}
			}
		}
		return
	}
	for _, method := range p.methods {
		for _, s := range pkg.sources {
			if at, ok := s.methodIndex(p.methods)[receiver+"."+method]; ok {
				s.want(at)
			}
		}
	}
}

func receiverName(fn *ast.FuncDecl) string {
	expr := fn.Recv.List[0].Type
	for {
		switch x := expr.(type) {
		case *ast.StarExpr:
			expr = x.X
		case *ast.ParenExpr:
			expr = x.X
		case *ast.IndexExpr:
			expr = x.X
		case *ast.IndexListExpr:
			expr = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// references walks a type expression and marks what it names.
type references struct {
	program *Program
	pkg     *Package
	file    *File
	local   []string // type parameters
}

func (r *references) params(list *ast.FieldList) {
	if list == nil {
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			r.local = append(r.local, name.Name)
		}
		r.expr(field.Type)
	}
}

func (r *references) expr(expr ast.Expr) {
	if expr == nil {
		return
	}
	ast.Inspect(expr, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Field:
			r.expr(node.Type) // not its names, not its tag
			return false
		case *ast.KeyValueExpr:
			r.expr(node.Value)
			return false
		case *ast.FuncLit:
			return false
		case *ast.SelectorExpr:
			x, ok := node.X.(*ast.Ident)
			if !ok {
				return true
			}
			spec := r.pkg.importSpec(r.file, x.Name)
			if spec == nil {
				r.name(x.Name)
				return false
			}
			r.file.used[spec] = true
			imported, _ := strconv.Unquote(spec.Path.Value)
			target, err := r.pkg.follow(imported)
			switch {
			case imported == "unsafe":
			case err != nil:
				r.program.missing = append(r.program.missing, err)
			default:
				r.program.need(target, node.Sel.Name)
			}
			return false
		case *ast.Ident:
			r.name(node.Name)
		}
		return true
	})
}

func (r *references) name(name string) {
	if name == "_" || slices.Contains(r.local, name) {
		return
	}
	r.program.need(r.pkg, name)
	for _, spec := range r.file.File.Imports {
		if spec.Name != nil && spec.Name.Name == "." {
			r.file.used[spec] = true
			imported, _ := strconv.Unquote(spec.Path.Value)
			if target, err := r.pkg.follow(imported); err == nil {
				r.program.need(target, name)
			}
		}
	}
}
