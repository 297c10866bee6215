// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package markers

import (
	"errors"
	"go/ast"
	"go/token"
	"strings"
)

// Problem is something wrong with a marker, at its place in the source.
type Problem struct {
	Pos     token.Pos
	Message string
	// Lenient marks what was always accepted silently: names that nothing
	// defines, and markers where nothing reads them.
	Lenient bool
}

// File holds the markers of one source file.
type File struct {
	Package  Set
	Types    map[*ast.TypeSpec]Set
	Fields   map[*ast.Field]Set
	Problems []Problem
}

// Collector parses markers with the definitions of a registry. It is safe for
// concurrent use.
type Collector struct {
	Registry *Registry
	// Known holds further definitions that are recognised, so that they are not
	// reported as unknown, but whose values are not needed.
	Known *Registry
	// Reserved are the name prefixes under which an unknown marker is a
	// mistake, for example "kubebuilder:".
	Reserved []string
	// Foreign are name prefixes that other tools own, for example
	// "kubebuilder:scaffold".
	Foreign []string
}

// File collects the markers of a parsed file. A marker is a line comment whose
// text starts with '+'. It belongs
//
//   - to a type or field if it stands in its doc comment, or in the closest
//     comment group above that;
//   - to the package if it stands above the package clause, in any other comment
//     group between top-level declarations, or in the group above a type while
//     only a package-level definition has its name.
//
// Markers in the doc comment of a function, variable, constant or import, and
// free-standing ones inside declarations, belong to nothing.
func (c *Collector) File(file *ast.File) *File {
	w := &walk{
		collector: c,
		out:       &File{Types: map[*ast.TypeSpec]Set{}, Fields: map[*ast.Field]Set{}},
		groups:    file.Comments,
	}
	for _, group := range w.before(file.Package) {
		w.toPackage(group)
	}
	for _, decl := range file.Decls {
		w.decl(decl)
	}
	for _, group := range w.before(token.Pos(1 << 40)) {
		w.toPackage(group)
	}
	return w.out
}

// walk is the state of one pass over a file: the comment groups not yet
// attributed, in source order.
type walk struct {
	collector *Collector
	out       *File
	groups    []*ast.CommentGroup
}

// before consumes the groups that start before pos.
func (w *walk) before(pos token.Pos) []*ast.CommentGroup {
	n := 0
	for n < len(w.groups) && w.groups[n].Pos() < pos {
		n++
	}
	taken := w.groups[:n]
	w.groups = w.groups[n:]
	return taken
}

// skipSameLine drops the comment at the end of a declaration's line.
func (w *walk) skipSameLine(group *ast.CommentGroup) {
	if group != nil && len(w.groups) > 0 && w.groups[0] == group {
		w.groups = w.groups[1:]
	}
}

// above consumes the groups before a node and splits them: those that stand free,
// the closest one that is not the doc comment (nil if there is none).
func (w *walk) above(pos token.Pos, doc *ast.CommentGroup) (free []*ast.CommentGroup, closest *ast.CommentGroup) {
	groups := w.before(pos)
	if n := len(groups); n > 0 && groups[n-1] == doc {
		groups = groups[:n-1]
	}
	if n := len(groups); n > 0 {
		return groups[:n-1], groups[n-1]
	}
	return nil, nil
}

func (w *walk) decl(decl ast.Decl) {
	gen, ok := decl.(*ast.GenDecl)
	if !ok {
		fn, _ := decl.(*ast.FuncDecl)
		if fn == nil {
			return
		}
		w.plain(fn.Pos(), fn.Doc, "the doc comment of func "+fn.Name.Name)
		w.inside(fn.End(), "func "+fn.Name.Name)
		return
	}
	if gen.Tok != token.TYPE || gen.Lparen.IsValid() {
		w.plain(gen.Pos(), gen.Doc, "the doc comment of a "+gen.Tok.String()+" declaration")
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				w.typeSpec(spec, nil, nil)
			case *ast.ValueSpec:
				w.inside(spec.End(), "the declaration of "+spec.Names[0].Name)
				w.skipSameLine(spec.Comment)
			case *ast.ImportSpec:
				w.before(spec.End())
				w.skipSameLine(spec.Comment)
			}
		}
		w.before(gen.End())
		return
	}
	free, closest := w.above(gen.Pos(), gen.Doc)
	for _, group := range free {
		w.toPackage(group)
	}
	for _, spec := range gen.Specs {
		w.typeSpec(spec.(*ast.TypeSpec), closest, gen.Doc)
	}
}

// plain handles a declaration that cannot carry markers: what stands above it is
// the package's, what stands in its doc comment is lost.
func (w *walk) plain(pos token.Pos, doc *ast.CommentGroup, where string) {
	free, closest := w.above(pos, doc)
	for _, group := range free {
		w.toPackage(group)
	}
	w.toPackage(closest)
	w.lost(doc, where, ": leave an empty line after it")
}

// inside consumes the comments up to the end of a declaration that cannot carry
// markers.
func (w *walk) inside(end token.Pos, where string) {
	for _, group := range w.before(end) {
		w.lost(group, where, ": put it between declarations")
	}
}

func (w *walk) typeSpec(spec *ast.TypeSpec, closest, doc *ast.CommentGroup) {
	var set Set
	free, innerClosest := w.above(spec.Pos(), spec.Doc)
	for _, group := range free {
		w.lost(group, "a comment that stands apart inside a declaration", "")
	}
	for _, group := range []*ast.CommentGroup{closest, innerClosest} {
		for _, comment := range lines(group) {
			text := text(comment)
			registry := w.collector.Registry
			if registry.Lookup(text, Type) == nil && registry.Lookup(text, Package) != nil {
				w.out.Package = w.add(w.out.Package, comment, Package)
				continue
			}
			set = w.add(set, comment, Type)
		}
	}
	for _, group := range []*ast.CommentGroup{doc, spec.Doc} {
		for _, comment := range lines(group) {
			set = w.add(set, comment, Type)
		}
	}
	w.out.Types[spec] = set
	w.expr(spec.Type)
	w.before(spec.End())
	w.skipSameLine(spec.Comment)
}

// expr collects the markers of the fields of every struct in a type expression.
func (w *walk) expr(expr ast.Expr) {
	ast.Inspect(expr, func(node ast.Node) bool {
		list, ok := node.(*ast.FieldList)
		if !ok {
			return true
		}
		for _, field := range list.List {
			free, closest := w.above(field.Pos(), field.Doc)
			for _, group := range free {
				w.lost(group, "a comment that stands apart inside a type", "")
			}
			var set Set
			for _, comment := range append(lines(closest), lines(field.Doc)...) {
				set = w.add(set, comment, Field)
			}
			w.out.Fields[field] = set
			w.expr(field.Type)
			w.before(field.End())
			w.skipSameLine(field.Comment)
		}
		for _, group := range w.before(list.End()) {
			w.lost(group, "a comment after the last field", "")
		}
		return false
	})
}

func (w *walk) toPackage(group *ast.CommentGroup) {
	for _, comment := range lines(group) {
		w.out.Package = w.add(w.out.Package, comment, Package)
	}
}

// add parses a marker for a target and appends its value.
func (w *walk) add(set Set, comment *ast.Comment, on Target) Set {
	text := text(comment)
	def := w.collector.Registry.Lookup(text, on)
	if def == nil {
		w.unknown(comment, text, on)
		return set
	}
	data, err := def.Parse(text)
	if err != nil {
		w.problem(comment, err, def)
		return set
	}
	return append(set, Value{Name: def.Name, Data: data, Pos: comment.Pos()})
}

func (w *walk) problem(comment *ast.Comment, err error, def *Definition) {
	pos := comment.Pos()
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		pos += token.Pos(min(strings.IndexByte(comment.Text, '+')+syntax.Offset, len(comment.Text)-1))
	}
	w.out.Problems = append(w.out.Problems, Problem{Pos: pos, Message: "marker +" + def.Name + ": " + err.Error()})
}

// unknown reports a marker that no definition matches, if its name says that one
// should.
func (w *walk) unknown(comment *ast.Comment, text string, on Target) {
	long, _, _ := name(text)
	c := w.collector
	if c.Known == nil || c.Known.Lookup(text, on) != nil || !hasPrefix(long, c.Reserved) || hasPrefix(long, c.Foreign) {
		return
	}
	message := "unknown marker +" + long
	for _, elsewhere := range []Target{Package, Type, Field} {
		if c.Known.Lookup(text, elsewhere) != nil {
			message = "marker +" + long + " has no effect on a " + on.String() + ": it belongs on a " + elsewhere.String()
		}
	}
	if name := c.Known.Suggest(text); strings.HasPrefix(message, "unknown") && name != "" {
		message += " (did you mean +" + name + "?)"
	}
	w.out.Problems = append(w.out.Problems, Problem{Pos: comment.Pos(), Message: message, Lenient: true})
}

// lost reports markers in a place where nothing reads them, with advice for those
// that a package may have.
func (w *walk) lost(group *ast.CommentGroup, where, advice string) {
	for _, comment := range lines(group) {
		text := text(comment)
		long, _, _ := name(text)
		known := w.collector.Known
		if known == nil || !hasPrefix(long, w.collector.Reserved) || hasPrefix(long, w.collector.Foreign) {
			continue
		}
		message := "marker +" + long + " has no effect in " + where
		if known.Lookup(text, Package) != nil {
			message += advice
		}
		w.out.Problems = append(w.out.Problems, Problem{Pos: comment.Pos(), Message: message, Lenient: true})
	}
}

func hasPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// lines returns the comments of a group that are markers.
func lines(group *ast.CommentGroup) []*ast.Comment {
	if group == nil {
		return nil
	}
	var found []*ast.Comment
	for _, comment := range group.List {
		if IsMarker(comment.Text) {
			found = append(found, comment)
		}
	}
	return found
}

// IsMarker reports whether a comment, with its slashes, is a marker.
func IsMarker(comment string) bool {
	return strings.HasPrefix(comment, "//") && strings.HasPrefix(strings.TrimSpace(comment[2:]), "+")
}

// text is a marker's text from the '+' on.
func text(comment *ast.Comment) string { return strings.TrimSpace(comment.Text[2:]) }
