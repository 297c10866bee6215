// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command extract writes markers.txt: the markers in the comments of API types, which
// reflection cannot see. Arguments are import paths. Of validation rules (+k8s:) it takes
// those that are in force in a server of that minor: without a stage, or beta.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
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
	packages, err := compiled(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
	for _, path := range os.Args[1:] {
		lines, err := extract(packages, path)
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

// compiled returns an importer of packages, from what the compiler has written of them.
func compiled(paths []string) (types.Importer, error) {
	listed, err := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }), nil
}

// extract returns the lines of one package, sorted.
func extract(packages types.Importer, path string) ([]string, error) {
	listed, err := exec.Command("go", "list", "-f", `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`, path).Output()
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	x := &extraction{values: map[string][]string{}, constants: map[string]string{}}
	p, err := packages.Import(path)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", path, err)
	}
	x.readConstants(p)
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
	for prefix, enums := range map[string][]string{"enum=": x.enums, "k8s:enum=": x.declaredEnums} {
		for _, enum := range enums {
			if values := x.values[enum]; len(values) > 0 {
				slices.Sort(values)
				x.lines = append(x.lines, enum+"\t"+prefix+strings.Join(slices.Compact(values), "|"))
			}
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
	lines         []string
	enums         []string
	declaredEnums []string            // those whose values a server validates
	values        map[string][]string // constants by type
	constants     map[string]string   // by name
}

func (x *extraction) declaration(g *ast.GenDecl) {
	for _, s := range g.Specs {
		if s, ok := s.(*ast.TypeSpec); ok {
			doc := s.Doc
			if doc == nil {
				doc = g.Doc
			}
			if regexp.MustCompile(`(?m)^\s*\+enum\s*$`).MatchString(doc.Text()) {
				x.enums = append(x.enums, s.Name.Name)
			}
			marks := markers(doc.Text(), false)
			if i := slices.Index(marks, "k8s:enum"); i >= 0 {
				marks = slices.Delete(marks, i, i+1)
				x.declaredEnums = append(x.declaredEnums, s.Name.Name)
			}
			x.add(s.Name.Name, marks)
			if t, ok := s.Type.(*ast.StructType); ok {
				x.fields(s.Name.Name, t)
			}
		}
	}
}

// readConstants adds those of a package that are strings: the compiler knows their values.
func (x *extraction) readConstants(p *types.Package) {
	for _, name := range p.Scope().Names() {
		c, ok := p.Scope().Lookup(name).(*types.Const)
		if !ok || c.Val().Kind() != constant.String {
			continue
		}
		x.constants[name] = c.Val().ExactString()
		if t, ok := c.Type().(*types.Named); ok && t.Obj().Pkg() == p {
			x.values[t.Obj().Name()] = append(x.values[t.Obj().Name()], constant.StringVal(c.Val()))
		}
	}
}

func (x *extraction) fields(owner string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		if f.Tag == nil {
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

// markers returns the markers of a comment that affect a schema, and the validation rules.
// Whether a field is required is listed only if it differs from its JSON tag.
func markers(comment string, required bool) []string {
	var out []string
	for line := range strings.Lines(comment) {
		marker, ok := strings.CutPrefix(strings.TrimSpace(line), "+")
		if !ok {
			continue
		}
		if declared, ok := strings.CutPrefix(marker, "k8s:"); ok {
			if r := inForce(declared); r != "" {
				out = append(out, "k8s:"+r)
			}
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

// inForce is a declared rule without its stage, empty for one that validates nothing: one
// that is alpha, or a marker for generators and documents.
func inForce(declared string) string {
	stage, rest, _ := strings.Cut(declared, ")=+k8s:")
	switch {
	case strings.HasPrefix(stage, "alpha("):
		return ""
	case strings.HasPrefix(stage, "beta("):
		declared = rest
	}
	switch name := declared[:strings.IndexAny(declared+"=", "=(")]; {
	case strings.Contains(name, "-gen"), strings.HasPrefix(name, "openapi-"), declared == "listType=atomic":
		return ""
	case slices.Contains([]string{"conversion", "customValidation", "deprecated", "isSubresource", "prerelease", "supportsSubresource"}, name):
		return ""
	}
	return declared
}
