// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command extract writes markers.txt: the markers in the comments of API types, which
// reflection cannot see. Arguments are import paths.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	var out bytes.Buffer
	for _, path := range os.Args[1:] {
		lines, err := extract(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "extract:", err)
			os.Exit(1)
		}
		if len(lines) > 0 {
			fmt.Fprintf(&out, "package\t%s\n", path)
			for _, line := range lines {
				fmt.Fprintln(&out, line)
			}
		}
	}
	if err := os.WriteFile("markers.txt", out.Bytes(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

// extract returns the lines of one package, sorted.
func extract(path string) ([]string, error) {
	listed, err := exec.Command("go", "list", "-f", `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`, path).Output()
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	x := &extraction{values: map[string][]string{}, constants: map[string]string{}}
	for _, name := range strings.Fields(string(listed)) {
		if base := filepath.Base(name); strings.HasPrefix(base, "zz_") || strings.HasPrefix(base, "generated") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok {
				x.declaration(g)
			}
		}
	}
	for _, enum := range x.enums {
		if values := x.values[enum]; len(values) > 0 {
			slices.Sort(values)
			x.lines = append(x.lines, enum+"\tenum="+strings.Join(slices.Compact(values), "|"))
		}
	}
	for i, line := range x.lines { // defaults that name a constant
		x.lines[i] = regexp.MustCompile(`default=ref\((\w+)\)`).ReplaceAllStringFunc(line, func(ref string) string {
			return "default=" + x.constants[strings.TrimSuffix(strings.TrimPrefix(ref, "default=ref("), ")")]
		})
	}
	slices.Sort(x.lines)
	return x.lines, nil
}

type extraction struct {
	lines     []string
	enums     []string
	values    map[string][]string // constants by type
	constants map[string]string   // by name
}

func (x *extraction) declaration(g *ast.GenDecl) {
	for _, s := range g.Specs {
		switch s := s.(type) {
		case *ast.ValueSpec:
			x.constant(s)
		case *ast.TypeSpec:
			doc := s.Doc
			if doc == nil {
				doc = g.Doc
			}
			if regexp.MustCompile(`(?m)^\s*\+enum\s*$`).MatchString(doc.Text()) {
				x.enums = append(x.enums, s.Name.Name)
			}
			x.add(s.Name.Name, markers(doc.Text(), false))
			if t, ok := s.Type.(*ast.StructType); ok {
				x.fields(s.Name.Name, t)
			}
		}
	}
}

func (x *extraction) constant(s *ast.ValueSpec) {
	name, ok := s.Type.(*ast.Ident)
	if !ok {
		return
	}
	for i, v := range s.Values {
		if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				x.values[name.Name] = append(x.values[name.Name], text)
				x.constants[s.Names[i].Name] = lit.Value
			}
		}
	}
}

func (x *extraction) fields(owner string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		if f.Tag == nil || len(f.Names) == 0 {
			continue
		}
		tag, _ := strconv.Unquote(f.Tag.Value)
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		x.add(owner+"."+name, markers(f.Doc.Text(), !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")))
	}
}

func (x *extraction) add(name string, found []string) {
	if len(found) > 0 {
		x.lines = append(x.lines, name+"\t"+strings.Join(found, "\t"))
	}
}

// markers returns the markers of a comment that affect a schema. Whether a field is
// required is listed only if it differs from its JSON tag.
func markers(comment string, required bool) []string {
	var out []string
	for line := range strings.Lines(comment) {
		marker, ok := strings.CutPrefix(strings.TrimSpace(line), "+")
		if !ok {
			continue
		}
		name, value, _ := strings.Cut(marker, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch name {
		case "listType", "listMapKey", "mapType", "structType", "default":
			out = append(out, name+"="+value)
		case "optional":
			if required {
				out = append(out, name)
			}
		case "required":
			if !required {
				out = append(out, name)
			}
		}
	}
	return out
}
