// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gofile

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Package is the files of a package.
type Package []*File

// Declares reports whether the package declares a name.
func (files Package) Declares(name string) bool {
	return slices.ContainsFunc(files, func(s *File) bool {
		return slices.ContainsFunc(s.file.Decls, func(decl ast.Decl) bool { return slices.Contains(declared(decl), name) })
	})
}

// Fields are those of a struct type, without embedded ones; none if there is no such type.
func (files Package) Fields(typ string) []Field {
	for _, s := range files {
		if fields := s.fields(typ); fields != nil {
			return fields
		}
	}
	return nil
}

// Basic is Go's own type, such as string, that a type is made of; empty if it is another
// one.
func (files Package) Basic(typ string) string {
	for _, s := range files {
		if _, spec := s.TypeSpec(typ); spec != nil && spec.TypeParams == nil {
			if name, ok := spec.Type.(*ast.Ident); ok && !ast.IsExported(name.Name) && !files.Declares(name.Name) {
				return name.Name
			}
		}
	}
	return ""
}

// versionMarkers are lines that hold for one version of a kind and not for the next one.
var versionMarkers = regexp.MustCompile(`(?m)^[ \t]*//[ \t]*\+kubebuilder:(storageversion|unservedversion|skipversion|deprecatedversion|conversion:webhook)\b.*\n`)

// CopyTypes makes a file of another package that declares types as this one does: with all
// that they use of the package, and without the markers that say which version is stored,
// served or converted. The methods of the types are not copied; methods and constants of
// what the types use are. Names that the other package declares already, which has reports,
// are left to it. CopyTypes returns nil if the first of the types is in none of the files.
func (files Package) CopyTypes(to string, has func(name string) bool, types ...string) ([]byte, error) {
	c := &copier{names: map[string]declaration{}, parts: map[string][]declaration{}, wanted: map[ast.Decl]bool{}, imports: map[string]bool{}}
	for _, f := range files {
		c.index(f)
	}
	if len(types) == 0 || c.names[types[0]].decl == nil {
		return nil, nil
	}
	for _, name := range types {
		if d := c.names[name]; d.decl != nil {
			c.want(d, has, types)
		}
	}
	var body bytes.Buffer
	for _, f := range files {
		for i, decl := range f.file.Decls {
			if c.wanted[decl] {
				fmt.Fprintf(&body, "\n%s\n", f.whole(i))
			}
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "package %s\n", to)
	if len(c.imports) > 0 {
		out.WriteString("\nimport (\n")
		for _, spec := range sortedKeys(c.imports) {
			out.WriteString("\t" + spec + "\n")
		}
		out.WriteString(")\n")
	}
	out.Write(versionMarkers.ReplaceAll(body.Bytes(), nil))
	return out.Bytes(), nil
}

func sortedKeys(m map[string]bool) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { // by path, whatever the name in front of it
		return strings.Compare(a[strings.Index(a, `"`):], b[strings.Index(b, `"`):])
	})
	return keys
}

// declaration is one of a package.
type declaration struct {
	in   *File
	decl ast.Decl
}

// copier finds what types use.
type copier struct {
	names   map[string]declaration   // of the package
	parts   map[string][]declaration // methods and constants, by their type
	wanted  map[ast.Decl]bool
	imports map[string]bool // import specs of the copy
}

// index notes what a file declares.
func (c *copier) index(f *File) {
	for _, decl := range f.file.Decls {
		d := declaration{f, decl}
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
			if of := receiver(fn); of != "" {
				c.parts[of] = append(c.parts[of], d)
			}
			continue
		}
		for _, name := range declared(decl) {
			c.names[name] = d
		}
		if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.CONST {
			for _, spec := range gen.Specs {
				if of, ok := spec.(*ast.ValueSpec).Type.(*ast.Ident); ok {
					c.parts[of.Name] = append(c.parts[of.Name], d)
				}
			}
		}
	}
}

// declared are the names that a declaration gives to its package.
func declared(decl ast.Decl) (names []string) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil && decl.Name.Name != "init" {
			names = append(names, decl.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "_" })
}

// receiver is the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// want takes a declaration into the copy, with all that it uses.
func (c *copier) want(d declaration, has func(string) bool, types []string) {
	if c.wanted[d.decl] {
		return
	}
	c.wanted[d.decl] = true
	for _, name := range declared(d.decl) {
		if slices.Contains(types, name) {
			continue
		}
		for _, part := range c.parts[name] {
			c.want(part, has, types)
		}
	}
	c.uses(d.decl, d.in, has, types)
}

// uses takes what a node names of the package into the copy.
func (c *copier) uses(in ast.Node, f *File, has func(string) bool, types []string) {
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				if spec := f.importOf(of.Name); spec != "" {
					c.imports[spec] = true
					return false
				}
			}
			c.uses(n.X, f, has, types)
			return false
		case *ast.Field: // its name is none of the package
			c.uses(n.Type, f, has, types)
			return false
		case *ast.Ident:
			if d := c.names[n.Name]; d.decl != nil && !has(n.Name) {
				c.want(d, has, types)
			}
		}
		return true
	})
}

// importOf is the import whose package has a name in the file, as it stands there.
func (s *File) importOf(name string) string {
	for _, spec := range s.file.Imports {
		if spec.Name != nil {
			if spec.Name.Name == name {
				return s.Text(spec)
			}
			continue
		}
		if slices.Contains(packageNames(strings.Trim(spec.Path.Value, "`\"")), name) {
			return s.Text(spec)
		}
	}
	return ""
}

// packageNames are the names that a package is likely to have by its path.
func packageNames(of string) []string {
	base := path.Base(of)
	names := []string{base, strings.TrimPrefix(base, "go-"), path.Base(path.Dir(of))}
	if before, _, ok := strings.Cut(base, ".v"); ok {
		names = append(names, before)
	}
	return names
}

// whole is the text of a declaration with its documentation, the markers above that, and
// a comment at its end.
func (s *File) whole(i int) string {
	decl := s.file.Decls[i]
	begin, after := decl.Pos(), s.file.Name.End()
	if i > 0 {
		after = s.file.Decls[i-1].End()
	}
	for _, group := range slices.Backward(s.file.Comments) {
		if group.Pos() < after || group.End() > begin {
			continue
		}
		if group.Pos() > after && s.line(group.Pos()) == s.line(after) { // ends the line of what is before
			continue
		}
		if s.line(group.End())+1 == s.line(begin) || slices.ContainsFunc(group.List, isMarker) {
			begin = group.Pos()
		}
	}
	end := s.offset(decl.End())
	if rest, _, _ := bytes.Cut(s.text[end:], []byte("\n")); bytes.HasPrefix(bytes.TrimSpace(rest), []byte("//")) {
		end += len(rest)
	}
	return string(s.text[s.offset(begin):end])
}

func isMarker(c *ast.Comment) bool {
	return strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(c.Text, "//")), "+")
}
