// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gofile changes Go files in places: elements of literals, imports, markers, and the
// operator of a main package. What it does not change stays byte for byte.
package gofile

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// File is a Go file that is being changed in places: all other bytes stay. Nodes that its
// methods return are valid until the next change. It is not safe for concurrent use.
type File struct {
	name string // for errors
	text []byte
	fset *token.FileSet
	file *ast.File
}

// Parse reads a file; the name is for errors.
func Parse(name string, text []byte) (*File, error) {
	s := &File{name: name}
	return s, s.Set(text)
}

// Set takes a new text over.
func (s *File) Set(text []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, s.name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%w; correct the file first", err)
	}
	s.text, s.fset, s.file = text, fset, file
	return nil
}

// Formatted is the text after all changes.
func (s *File) Formatted() ([]byte, error) { return format.Source(s.text) }

// Syntax is the file as it is parsed now.
func (s *File) Syntax() *ast.File { return s.file }

func (s *File) offset(pos token.Pos) int { return s.fset.Position(pos).Offset }

func (s *File) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// splice replaces the bytes from begin to end.
func (s *File) splice(begin, end int, with string) error {
	return s.Set(slices.Concat(s.text[:begin], []byte(with), s.text[end:]))
}

// Text is the text of a node.
func (s *File) Text(n ast.Node) string { return string(s.text[s.offset(n.Pos()):s.offset(n.End())]) }

// ImportAs makes the file import a package under a name.
func (s *File) ImportAs(name, path, module string) error {
	var last *ast.ImportSpec // of the module's own
	for _, spec := range s.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err == nil && imported == path && (spec.Name == nil || spec.Name.Name == name) {
			return nil
		}
		if err == nil && (imported == module || strings.HasPrefix(imported, module+"/")) {
			last = spec
		}
	}
	line := name + " " + strconv.Quote(path)
	if path == name || strings.HasSuffix(path, "/"+name) {
		line = strconv.Quote(path)
	}
	own := path == module || strings.HasPrefix(path, module+"/")
	first, _, _ := strings.Cut(path, "/")
	standard := !own && !strings.Contains(first, ".")
	if last != nil && own {
		at := s.lineEnd(last)
		return s.splice(at, at, "\n"+line)
	}
	for _, decl := range s.file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.IMPORT || !gen.Rparen.IsValid() {
			continue
		}
		if standard { // first, where those of the library are
			at := s.offset(gen.Lparen) + 1
			return s.splice(at, at, "\n"+line)
		}
		at, gap := s.offset(gen.Rparen), "\n"
		if !own { // beside other modules', in front of the module's own
			gap = ""
			if len(gen.Specs) > 0 {
				at = s.lineEnd(s.lastForeign(gen, module))
				return s.splice(at, at, "\n"+line)
			}
		}
		return s.splice(at, at, gap+line+"\n")
	}
	at := s.offset(s.file.Name.End())
	return s.splice(at, at, "\n\nimport (\n"+line+"\n)")
}

// Requalify makes the file use a package in place of another one: its import and all names
// that have it in front.
func (s *File) Requalify(from, name, path, module string) error {
	i := slices.IndexFunc(s.file.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == strconv.Quote(from) })
	if i < 0 {
		return nil
	}
	old := from[strings.LastIndex(from, "/")+1:]
	if spec := s.file.Imports[i]; spec.Name != nil {
		old = spec.Name.Name
	}
	var uses []*ast.Ident
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == old {
				uses = append(uses, id)
			}
		}
		return true
	})
	text := s.text
	for _, id := range slices.Backward(uses) {
		text = slices.Concat(text[:s.offset(id.Pos())], []byte(name), text[s.offset(id.End()):])
	}
	if err := s.Set(text); err != nil {
		return err
	}
	if err := s.ImportAs(name, path, module); err != nil {
		return err
	}
	return s.DropImport(old, from)
}

// ReplaceString replaces a string literal everywhere.
func (s *File) ReplaceString(from, to string) error {
	return s.Set(bytes.ReplaceAll(s.text, []byte(strconv.Quote(from)), []byte(strconv.Quote(to))))
}

// lineEnd is the offset of the end of the line that a node ends on.
func (s *File) lineEnd(n ast.Node) int {
	end := s.offset(n.End())
	return end + max(bytes.IndexByte(s.text[end:], '\n'), 0)
}

// lastForeign is the last import of an import declaration that is not of the module.
func (s *File) lastForeign(gen *ast.GenDecl, module string) ast.Spec {
	for _, spec := range slices.Backward(gen.Specs) {
		if !strings.Contains(spec.(*ast.ImportSpec).Path.Value, `"`+module+"/") {
			return spec
		}
	}
	return gen.Specs[0]
}

// DropImport removes an import whose name is not used any more.
func (s *File) DropImport(name, path string) error {
	used := false
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			id, ok := sel.X.(*ast.Ident)
			used = used || ok && id.Name == name
		}
		return !used
	})
	if used {
		return nil
	}
	for _, spec := range s.file.Imports {
		if spec.Path.Value == strconv.Quote(path) && (spec.Name == nil || spec.Name.Name == name) {
			return s.CutLine(spec)
		}
	}
	return nil
}

// CutLine removes a node with the line that it stands on alone.
func (s *File) CutLine(n ast.Node) error {
	begin, end := s.offset(n.Pos()), s.offset(n.End())
	for begin > 0 && (s.text[begin-1] == ' ' || s.text[begin-1] == '\t') {
		begin--
	}
	if i := bytes.IndexByte(s.text[end:], '\n'); i >= 0 && len(bytes.TrimSpace(s.text[end:end+i])) == 0 {
		end += i + 1
	}
	return s.splice(begin, end, "")
}

// Literal is the first composite literal of a type, such as steer.Scheme.
func (s *File) Literal(typ string) (found *ast.CompositeLit) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && found == nil && lit.Type != nil && s.Text(lit.Type) == typ {
			found = lit
		}
		return found == nil
	})
	return found
}

// Call is the first call of a function or method below a node, such as errors.Join.
func (s *File) Call(in ast.Node, function string) (found *ast.CallExpr) {
	ast.Inspect(in, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && found == nil {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (s.Text(sel) == function || "."+sel.Sel.Name == function) {
				found = call
			}
		}
		return found == nil
	})
	return found
}

// AppendTo adds an element to a list in brackets: an argument, or an element of a
// literal. The list gets a line of its own for it if it is empty or has several lines.
func (s *File) AppendTo(elements []ast.Expr, open, closing token.Pos, text string) error {
	at := s.offset(closing)
	if len(elements) == 0 {
		return s.splice(s.offset(open)+1, at, "\n"+text+",\n")
	}
	last := s.offset(elements[len(elements)-1].End())
	if s.line(open) == s.line(closing) {
		return s.splice(last, last, ", "+text)
	}
	if s.line(open) == s.line(elements[0].Pos()) && s.line(elements[len(elements)-1].End()) == s.line(closing) {
		return s.splice(last, last, ",\n"+text)
	}
	rest := s.text[last:at]
	if i := bytes.IndexByte(rest, ','); i >= 0 && len(bytes.TrimSpace(rest[:i])) == 0 {
		return s.splice(at, at, text+",\n")
	}
	return s.splice(last, last, ",\n"+text)
}

// RemoveFrom removes an element of a list in brackets, with its comma.
func (s *File) RemoveFrom(element ast.Expr) error {
	begin, end := s.offset(element.Pos()), s.offset(element.End())
	rest := bytes.TrimLeft(s.text[end:], " \t")
	if bytes.HasPrefix(rest, []byte(",")) {
		end = len(s.text) - len(rest) + 1
		line := bytes.TrimRight(s.text[:begin], " \t")
		after := bytes.TrimLeft(s.text[end:], " \t")
		if bytes.HasSuffix(line, []byte("\n")) && bytes.HasPrefix(after, []byte("\n")) {
			return s.splice(len(line), len(s.text)-len(after)+1, "")
		}
		return s.splice(begin, len(s.text)-len(after), "")
	}
	// The last of a line: the comma before it is the one too many.
	before := bytes.TrimRight(s.text[:begin], " \t\n")
	return s.splice(len(bytes.TrimSuffix(before, []byte(","))), end, "")
}

// AddElement adds an element to the first literal of a type, unless it is there.
// It reports whether there is such a literal.
func (s *File) AddElement(typ, text string) (bool, error) {
	lit := s.Literal(typ)
	if lit == nil {
		return false, nil
	}
	if slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool { return s.Text(e) == text }) {
		return true, nil
	}
	return true, s.AppendTo(lit.Elts, lit.Lbrace, lit.Rbrace, text)
}

// Element is the element of the first literal of a type that is itself a literal of another
// type; nil if there is none.
func (s *File) Element(typ, of string) ast.Expr {
	lit := s.Literal(typ)
	if lit == nil {
		return nil
	}
	i := slices.IndexFunc(lit.Elts, func(e ast.Expr) bool {
		inner, ok := e.(*ast.CompositeLit)
		return ok && inner.Type != nil && s.Text(inner.Type) == of
	})
	if i < 0 {
		return nil
	}
	return lit.Elts[i]
}

// RemoveElement removes an element of the first literal of a type, and reports
// whether it was there.
func (s *File) RemoveElement(typ, text string) (bool, error) {
	lit := s.Literal(typ)
	if lit == nil {
		return false, nil
	}
	i := slices.IndexFunc(lit.Elts, func(e ast.Expr) bool { return s.Text(e) == text })
	if i < 0 {
		return false, nil
	}
	return true, s.RemoveFrom(lit.Elts[i])
}

// TypeSpec returns the declaration of a type, nil if it is not in the file.
func (s *File) TypeSpec(name string) (*ast.GenDecl, *ast.TypeSpec) {
	for _, decl := range s.file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			if typ := spec.(*ast.TypeSpec); typ.Name.Name == name {
				return gen, typ
			}
		}
	}
	return nil, nil
}

// UnmarkType removes a marker line of a type's documentation.
func (s *File) UnmarkType(name, marker string) error {
	gen, typ := s.TypeSpec(name)
	if typ == nil {
		return nil
	}
	for _, doc := range []*ast.CommentGroup{gen.Doc, typ.Doc} {
		if doc == nil {
			continue
		}
		for _, line := range doc.List {
			if strings.TrimSpace(strings.TrimPrefix(line.Text, "//")) == marker {
				return s.CutLine(line)
			}
		}
	}
	return nil
}

// MarkType adds a marker line to the documentation of a type, unless it has it. It
// reports whether the type is there.
func (s *File) MarkType(name, marker string) (bool, error) {
	gen, typ := s.TypeSpec(name)
	if typ == nil {
		return false, nil
	}
	doc, at := gen.Doc, gen.Pos()
	if gen.Lparen.IsValid() {
		doc, at = typ.Doc, typ.Pos()
	}
	if doc != nil && strings.Contains(s.Text(doc), marker) {
		return true, nil
	}
	return true, s.splice(s.offset(at), s.offset(at), "// "+marker+"\n")
}

// Function is a function of the file; nil if there is none of that name.
func (s *File) Function(name string) *ast.FuncDecl {
	for _, decl := range s.file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == name {
			return fn
		}
	}
	return nil
}
