// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// stableTier are the folders whose exported identifiers are stable: a breaking
// change of them needs a line in the changelog that says how callers change.
// Their public sub-packages belong to them.
var stableTier = []string{".", "client", "cache", "queue", "controller", "manager", "webhook", "certificate", "trace", "steertest"}

const apiPaper = "internal/house/testdata/api.txt"

// TestStableAPIIsListed keeps internal/house/testdata/api.txt equal to the exported
// identifiers of the stable tier, one a line, so that a change shows in review.
func TestStableAPIIsListed(t *testing.T) {
	t.Parallel()
	lines := map[string]bool{}
	for _, f := range goFiles(t) {
		dir := path.Dir(f.path)
		if strings.HasSuffix(f.path, "_test.go") || strings.Contains("/"+dir+"/", "/internal/") || !slices.Contains(stableTier, topFolder(f.path)) || f.syntax.Name.Name == "main" {
			continue
		}
		for _, decl := range f.syntax.Decls {
			for _, line := range exportedBy(t, decl) {
				lines[dir+": "+line] = true
			}
		}
	}
	if len(lines) < 100 {
		t.Fatalf("%d exported identifiers found: the measurement is broken", len(lines))
	}
	got := strings.Join(slices.Sorted(maps.Keys(lines)), "\n") + "\n"
	was := readPaper(t, apiPaper)
	if was == got {
		return
	}
	if *update {
		if err := os.WriteFile(apiPaper, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	before := map[string]bool{}
	for line := range strings.Lines(was) {
		before[strings.TrimSuffix(line, "\n")] = true
		if !lines[strings.TrimSuffix(line, "\n")] {
			t.Errorf("- %s", line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		if !before[line] {
			t.Errorf("+ %s", line)
		}
	}
	t.Fatalf("%s is stale: go test ./internal/house -run TestStableAPIIsListed -update, and name breaking changes in CHANGELOG.md", apiPaper)
}

// exportedBy returns a line for each identifier that a declaration exports:
// functions and methods with their types, fields and interface methods one by one.
func exportedBy(t *testing.T, decl ast.Decl) []string {
	t.Helper()
	var out []string
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiverName(d.Recv.List[0].Type)) {
			return nil
		}
		signature := *d
		signature.Doc, signature.Body = nil, nil
		out = append(out, oneLine(t, &signature))
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						out = append(out, d.Tok.String()+" "+name.Name)
					}
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					out = append(out, exportedByType(t, s)...)
				}
			}
		}
	}
	return out
}

func exportedByType(t *testing.T, s *ast.TypeSpec) []string {
	t.Helper()
	head := "type " + s.Name.Name
	var members *ast.FieldList
	var kind string
	switch typ := s.Type.(type) {
	case *ast.StructType:
		members, kind = typ.Fields, "struct"
	case *ast.InterfaceType:
		members, kind = typ.Methods, "interface"
	default:
		plain := *s
		plain.Doc, plain.Comment = nil, nil
		return []string{"type " + oneLine(t, &plain)}
	}
	parameters := ""
	if s.TypeParams != nil {
		parameters = strings.TrimPrefix(oneLine(t, &ast.FuncType{Func: 1, Params: s.TypeParams}), "func")
	}
	out := []string{head + parameters + " " + kind}
	for _, m := range members.List {
		typ := oneLine(t, m.Type)
		if len(m.Names) == 0 && (kind == "interface" || ast.IsExported(receiverName(m.Type))) {
			out = append(out, head+", "+typ)
		}
		for _, name := range m.Names {
			switch {
			case !name.IsExported():
			case kind == "interface":
				out = append(out, head+", "+name.Name+strings.TrimPrefix(typ, "func"))
			default:
				out = append(out, head+", "+name.Name+" "+typ)
			}
		}
	}
	return out
}

// receiverName is the name of the type of a receiver or of an embedded field.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func oneLine(t *testing.T, node any) string {
	t.Helper()
	var out bytes.Buffer
	if err := printer.Fprint(&out, token.NewFileSet(), node); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}
