// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// surface is what the sources of one version of Kubernetes say of its API: for every section
// of the report, what there is, by name, with the properties that can change.
type surface map[section]map[string]properties

// properties are the lines by which an item differs from that of another version.
type properties []string

// section is a part of the report.
type section string

const (
	sectionKinds   section = "kinds"
	sectionFields  section = "fields"
	sectionValues  section = "values of enums"
	sectionGates   section = "feature gates"
	sectionColumns section = "columns of tables"
	sectionTypes   section = "types" // structs, with the types of their fields: which kind has them
)

func (s surface) add(in section, name string, p properties) {
	if s[in] == nil {
		s[in] = map[string]properties{}
	}
	slices.Sort(p)
	s[in][name] = slices.Compact(p)
}

// readTypes adds the kinds, fields and enums of the groups and versions below root, whose
// packages have a file types.go and a registration.
func (s surface) readTypes(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "types.go" {
			return err
		}
		dir := filepath.Dir(path)
		if _, err := os.Stat(filepath.Join(dir, "register.go")); err != nil {
			return nil //nolint:nilerr // types that are no API
		}
		p, err := parse(dir)
		if err != nil {
			return err
		}
		s.addPackage(p)
		return nil
	})
}

// source is a parsed package: its group and version, and its declarations.
type source struct {
	groupVersion string
	files        []*ast.File
}

func parse(dir string) (*source, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &source{groupVersion: filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)}
	set := token.NewFileSet()
	for _, path := range paths {
		base := filepath.Base(path)
		if strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "zz_generated") || strings.HasPrefix(base, "generated") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, file)
	}
	return p, nil
}

func (s surface) addPackage(p *source) {
	for _, file := range p.files {
		imported := groupVersions(file)
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					s.addType(p, spec, imported, markers(group.Doc, spec.Doc, above(file, group)))
				case *ast.ValueSpec:
					if group.Tok == token.CONST {
						s.addValue(p, spec, markers(spec.Doc))
					}
				}
			}
		}
	}
}

// addType adds a struct: as a kind, if it has metadata of a type and is no list, and field by
// field.
func (s surface) addType(p *source, spec *ast.TypeSpec, imported map[string]string, marks []string) {
	name := p.groupVersion + " " + spec.Name.Name
	s.add(sectionTypes, name, typesIn(spec.Type, p.groupVersion, imported))
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	kind := false
	for _, field := range body.Fields.List {
		written := text(field.Type)
		if len(field.Names) == 0 && written == "metav1.TypeMeta" {
			kind = true
			continue
		}
		field, ok := member(field, written)
		if ok {
			s.add(sectionFields, name+"."+field.name, append(markers(field.doc), "type "+written))
		}
	}
	if kind && !strings.HasSuffix(spec.Name.Name, "List") {
		s.add(sectionKinds, name, marks)
	}
}

// addValue adds a constant of a type that is a string.
func (s surface) addValue(p *source, spec *ast.ValueSpec, marks []string) {
	typ, ok := spec.Type.(*ast.Ident)
	if !ok || !ast.IsExported(typ.Name) || len(spec.Values) != 1 {
		return
	}
	value, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || value.Kind != token.STRING {
		return
	}
	s.add(sectionValues, p.groupVersion+" "+typ.Name+" "+value.Value, marks)
}

type field struct {
	name string
	doc  *ast.CommentGroup
}

// member is the name of a field on the wire, that of the type for one that is embedded.
func member(f *ast.Field, written string) (field, bool) {
	name, embedded := "", len(f.Names) == 0
	if f.Tag != nil {
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		name, _, _ = strings.Cut(tag, ",")
	}
	switch {
	case name == "-":
		return field{}, false
	case name == "" && embedded:
		name = "(" + strings.TrimPrefix(written, "*") + ")"
	case name == "":
		return field{}, false
	}
	return field{name: name, doc: f.Doc}, true
}

// markers are the lines of comments that begin with a plus sign: rules, defaults, gates, list
// types, versions since when.
func markers(docs ...*ast.CommentGroup) (out properties) {
	for _, doc := range docs {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			line := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
			if strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+k8s:deepcopy-gen") {
				out = append(out, line)
			}
		}
	}
	return out
}

// above is the comment that ends one line before the one of a declaration: there are the
// markers of kinds.
func above(file *ast.File, decl *ast.GenDecl) *ast.CommentGroup {
	from := token.NoPos
	for _, d := range file.Decls {
		if d.End() < decl.Pos() {
			from = d.End()
		}
	}
	all := &ast.CommentGroup{}
	for _, c := range file.Comments {
		if c.Pos() > from && c.End() < decl.Pos() && c != decl.Doc {
			all.List = append(all.List, c.List...)
		}
	}
	return all
}

// text is a node as gofmt writes it, without comments, on one line.
func text(n ast.Node) string {
	var out bytes.Buffer
	if err := printer.Fprint(&out, token.NewFileSet(), n); err != nil {
		return fmt.Sprint(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// specPattern reads what one version says of a feature gate.
var specPattern = regexp.MustCompile(`MustParse\("([0-9.]+)"\)`)

// readGates adds the feature gates of a package, with stage and default in the newest of their
// versions that a minor has.
func (s surface) readGates(dir string, minor int) error {
	p, err := parse(dir)
	if err != nil {
		return err
	}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok || !strings.HasSuffix(textOf(literal.Type), "VersionedSpecs") {
				return true
			}
			for _, e := range literal.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					s.addGate(pair, minor)
				}
			}
			return false
		})
	}
	return nil
}

// textOf is the text of what may not be there.
func textOf(n ast.Expr) string {
	if n == nil {
		return ""
	}
	return text(n)
}

func (s surface) addGate(pair *ast.KeyValueExpr, minor int) {
	specs, ok := pair.Value.(*ast.CompositeLit)
	if !ok {
		return
	}
	name := text(pair.Key)
	name = name[strings.LastIndex(name, ".")+1:]
	for _, e := range specs.Elts {
		spec, ok := e.(*ast.CompositeLit)
		if !ok {
			continue
		}
		var says properties
		for _, e := range spec.Elts {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, value := text(pair.Key), text(pair.Value)
			switch key {
			case "Version":
				var since int
				if m := specPattern.FindStringSubmatch(value); m != nil {
					_, _ = fmt.Sscanf(m[1], "1.%d", &since)
				}
				if since > minor {
					return
				}
			case "Default":
				says = append(says, "default "+value)
			case "PreRelease":
				stage := value[strings.LastIndex(value, ".")+1:]
				if stage == "" || stage == "GA" {
					stage = "stable"
				}
				says = append(says, "stage "+strings.ToLower(stage))
			case "LockToDefault":
				if value == "true" {
					says = append(says, "locked")
				}
			}
		}
		s.add(sectionGates, name, says)
	}
}

// readColumns adds the columns of the tables of built-in kinds, from the printers of the server.
func (s surface) readColumns(dir string) error {
	p, err := parse(dir)
	if err != nil {
		return err
	}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			assign, ok := n.(*ast.AssignStmt)
			if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
				return true
			}
			name, is := strings.CutSuffix(text(assign.Lhs[0]), "ColumnDefinitions")
			columns, ok := assign.Rhs[0].(*ast.CompositeLit)
			if !is || !ok {
				return true
			}
			for i, e := range columns.Elts {
				column, ok := e.(*ast.CompositeLit)
				if !ok {
					continue
				}
				says, title := properties{fmt.Sprint("place ", i+1)}, ""
				for _, e := range column.Elts {
					pair, ok := e.(*ast.KeyValueExpr)
					switch key := text(pair.Key); {
					case !ok:
					case key == "Name":
						title = text(pair.Value)
					case key != "Description":
						says = append(says, strings.ToLower(key)+" "+text(pair.Value))
					}
				}
				s.add(sectionColumns, name+" "+title, says)
			}
			return true
		})
	}
	return nil
}

// readFunctions returns the functions of the packages below a folder, as they are without
// comments, by package and name. A folder that is not there has none.
func readFunctions(root, below string, fits func(path string) bool) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, below), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || !fits(path) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				out[filepath.ToSlash(inside)+" "+f.Name.Name] = text(f)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	return out, err
}
