// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

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

// source is a Go file that is being changed in places: all other bytes stay.
type source struct {
	name string // for errors
	text []byte
	fset *token.FileSet
	file *ast.File
}

func parseSource(name string, text []byte) (*source, error) {
	s := &source{name: name}
	return s, s.set(text)
}

// set takes a new text over.
func (s *source) set(text []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, s.name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%w; correct the file first", err)
	}
	s.text, s.fset, s.file = text, fset, file
	return nil
}

// formatted is the text after all changes.
func (s *source) formatted() ([]byte, error) { return format.Source(s.text) }

func (s *source) offset(pos token.Pos) int { return s.fset.Position(pos).Offset }

func (s *source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// splice replaces the bytes from begin to end.
func (s *source) splice(begin, end int, with string) error {
	return s.set(slices.Concat(s.text[:begin], []byte(with), s.text[end:]))
}

// src is the text of a node.
func (s *source) src(n ast.Node) string { return string(s.text[s.offset(n.Pos()):s.offset(n.End())]) }

// importAs makes the file import a package under a name.
func (s *source) importAs(name, path, module string) error {
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

// lineEnd is the offset of the end of the line that a node ends on.
func (s *source) lineEnd(n ast.Node) int {
	end := s.offset(n.End())
	return end + max(bytes.IndexByte(s.text[end:], '\n'), 0)
}

// lastForeign is the last import of an import declaration that is not of the module.
func (s *source) lastForeign(gen *ast.GenDecl, module string) ast.Spec {
	for _, spec := range slices.Backward(gen.Specs) {
		if !strings.Contains(spec.(*ast.ImportSpec).Path.Value, `"`+module+"/") {
			return spec
		}
	}
	return gen.Specs[0]
}

// dropImport removes an import whose name is not used any more.
func (s *source) dropImport(name, path string) error {
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
			return s.cutLine(spec)
		}
	}
	return nil
}

// cutLine removes a node with the line that it stands on alone.
func (s *source) cutLine(n ast.Node) error {
	begin, end := s.offset(n.Pos()), s.offset(n.End())
	for begin > 0 && (s.text[begin-1] == ' ' || s.text[begin-1] == '\t') {
		begin--
	}
	if i := bytes.IndexByte(s.text[end:], '\n'); i >= 0 && len(bytes.TrimSpace(s.text[end:end+i])) == 0 {
		end += i + 1
	}
	return s.splice(begin, end, "")
}

// literal is the first composite literal of a type, such as steer.Scheme.
func (s *source) literal(typ string) (found *ast.CompositeLit) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && found == nil && lit.Type != nil && s.src(lit.Type) == typ {
			found = lit
		}
		return found == nil
	})
	return found
}

// call is the first call of a function or method below a node, such as errors.Join.
func (s *source) call(in ast.Node, function string) (found *ast.CallExpr) {
	ast.Inspect(in, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && found == nil {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (s.src(sel) == function || "."+sel.Sel.Name == function) {
				found = call
			}
		}
		return found == nil
	})
	return found
}

// appendTo adds an element to a list in brackets: an argument, or an element of a
// literal. The list gets a line of its own for it if it is empty or has several lines.
func (s *source) appendTo(elements []ast.Expr, open, closing token.Pos, text string) error {
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

// removeFrom removes an element of a list in brackets, with its comma.
func (s *source) removeFrom(element ast.Expr) error {
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

// addElement adds an element to the first literal of a type, unless it is there.
// It reports whether there is such a literal.
func (s *source) addElement(typ, text string) (bool, error) {
	lit := s.literal(typ)
	if lit == nil {
		return false, nil
	}
	if slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool { return s.src(e) == text }) {
		return true, nil
	}
	return true, s.appendTo(lit.Elts, lit.Lbrace, lit.Rbrace, text)
}

// element is the element of the first literal of a type that is itself a literal of another
// type; nil if there is none.
func (s *source) element(typ, of string) ast.Expr {
	lit := s.literal(typ)
	if lit == nil {
		return nil
	}
	i := slices.IndexFunc(lit.Elts, func(e ast.Expr) bool {
		inner, ok := e.(*ast.CompositeLit)
		return ok && inner.Type != nil && s.src(inner.Type) == of
	})
	if i < 0 {
		return nil
	}
	return lit.Elts[i]
}

// removeElement removes an element of the first literal of a type, and reports
// whether it was there.
func (s *source) removeElement(typ, text string) (bool, error) {
	lit := s.literal(typ)
	if lit == nil {
		return false, nil
	}
	i := slices.IndexFunc(lit.Elts, func(e ast.Expr) bool { return s.src(e) == text })
	if i < 0 {
		return false, nil
	}
	return true, s.removeFrom(lit.Elts[i])
}

// typeSpec returns the declaration of a type, nil if it is not in the file.
func (s *source) typeSpec(name string) (*ast.GenDecl, *ast.TypeSpec) {
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

// unmarkType removes a marker line of a type's documentation.
func (s *source) unmarkType(name, marker string) error {
	gen, typ := s.typeSpec(name)
	if typ == nil {
		return nil
	}
	for _, doc := range []*ast.CommentGroup{gen.Doc, typ.Doc} {
		if doc == nil {
			continue
		}
		for _, line := range doc.List {
			if strings.TrimSpace(strings.TrimPrefix(line.Text, "//")) == marker {
				return s.cutLine(line)
			}
		}
	}
	return nil
}

// markType adds a marker line to the documentation of a type, unless it has it. It
// reports whether the type is there.
func (s *source) markType(name, marker string) (bool, error) {
	gen, typ := s.typeSpec(name)
	if typ == nil {
		return false, nil
	}
	doc, at := gen.Doc, gen.Pos()
	if gen.Lparen.IsValid() {
		doc, at = typ.Doc, typ.Pos()
	}
	if doc != nil && strings.Contains(s.src(doc), marker) {
		return true, nil
	}
	return true, s.splice(s.offset(at), s.offset(at), "// "+marker+"\n")
}
