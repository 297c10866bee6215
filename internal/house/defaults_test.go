// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/manager"
)

const defaultsPaper = "docs/defaults.md"

// optionStructs are the options that docs/defaults.md lists, as folder and type.
func optionStructs() [][2]string {
	return [][2]string{
		{".", "Operator"},
		{"manager", "Options"}, {"manager", "Election"}, {"manager/election", "Timing"}, {"manager", "Metrics"}, {"webhook", "Options"}, {"webhook", "Authority"}, {"certificate", "TLS"},
		{"trace", "Options"}, {"cache", "Options"}, {"cache", "KindOptions"}, {"client", "Options"}, {"queue", "Options"},
		{"controller", "Children"},
		{"dashboard", "Options"}, {"steertest", "Options"}, {"controlplane", "Options"},
	}
}

// TestDefaultsAreListed keeps docs/defaults.md equal to what the options say of
// themselves.
func TestDefaultsAreListed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	out.WriteString("# Options and their defaults\n\nMade of the documentation of the options by `go test ./internal/house -run TestDefaultsAreListed -update`; the zero value of an option works unless the option is called required.\n")
	writeFlags(t, &out)
	writeControllerOptions(t, &out)
	for _, o := range optionStructs() {
		writeStruct(t, &out, o[0], o[1])
	}
	if readPaper(t, defaultsPaper) == out.String() {
		return
	}
	if !*update {
		t.Fatalf("%s is stale: go test ./internal/house -run TestDefaultsAreListed -update", defaultsPaper)
	}
	if err := os.WriteFile(defaultsPaper, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func writeFlags(t *testing.T, out io.Writer) {
	t.Helper()
	var flags *flag.FlagSet
	err := steer.Run(t.Context(), []string{"--help"}, steer.Operator{
		Name: "x", Setup: func(context.Context, *manager.Manager) error { return nil },
		Flags: func(set *flag.FlagSet) {
			set.SetOutput(io.Discard)
			flags = set
		},
	})
	if !errors.Is(err, flag.ErrHelp) || flags == nil {
		t.Fatalf("the flags cannot be read: %v", err)
	}
	fmt.Fprint(out, "\n## Flags and environment of `steer.Main`\n\n| flag | default | |\n|---|---|---|\n")
	flags.VisitAll(func(f *flag.Flag) {
		value := ""
		if f.DefValue != "" {
			value = "`" + f.DefValue + "`"
		}
		kind, usage := flag.UnquoteUsage(f)
		name := "`--" + f.Name + "`"
		if kind != "" {
			name = "`--" + f.Name + " " + strings.ToUpper(kind) + "`"
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", name, value, cell(usage))
	})
	fmt.Fprint(out, `
| variable | |
|---|---|
| `+"`KUBECONFIG`"+` | files that name the cluster, merged; read when `+"`--kubeconfig`"+` is not given |
| `+"`WATCH_NAMESPACE`"+` | namespaces to watch, separated by commas; empty means all |
| `+"`POD_NAMESPACE`, `RUNTIME_NAMESPACE`"+` | namespace of the leader lease |
| `+"`ENABLE_WEBHOOKS`"+` | `+"`false`"+` serves no webhooks |
| `+"`GOMEMLIMIT`, `GOMAXPROCS`"+` | read by Go itself |
`)
}

// writeControllerOptions lists the functions of package controller that make an
// option of Add or AddRequests.
func writeControllerOptions(t *testing.T, out io.Writer) {
	t.Helper()
	fmt.Fprint(out, "\n## `controller.Add` and `controller.AddRequests`\n\n`Add` takes all of them; the typed ones are for requests of type `Request` there. `AddRequests` takes those of type `RequestOption`, and those of type `SourceOption[K]` and `TypedOption[K]` in `controller.Typed`.\n\n| option | type | |\n|---|---|---|\n")
	found := 0
	for _, f := range filesOf(t, "controller") {
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() || fn.Type.Results == nil || len(fn.Type.Results.List) != 1 {
				continue
			}
			result := source(t, fn.Type.Results.List[0].Type)
			if !strings.HasSuffix(strings.TrimSuffix(result, "[K]"), "Option") && result != "ObjectSource" || result == "[]TypedOption[K]" {
				continue
			}
			if fn.Doc == nil {
				t.Errorf("%s: controller.%s says nothing of itself", f.path, fn.Name.Name)
			}
			found++
			fmt.Fprintf(out, "| `%s%s` | `%s` | %s |\n", fn.Name.Name, strings.TrimPrefix(source(t, &ast.FuncType{Params: fn.Type.Params}), "func"), result, cell(fn.Doc.Text()))
		}
	}
	if found == 0 {
		t.Error("package controller has no options: the list is made wrongly")
	}
}

func writeStruct(t *testing.T, out io.Writer, folder, name string) {
	t.Helper()
	spec, doc := findStruct(t, folder, name)
	title := path.Base(folder) + "." + name
	if folder == "." {
		title = "steer." + name
	}
	fmt.Fprintf(out, "\n## `%s`\n\n%s\n\n| field | type | |\n|---|---|---|\n", title, cell(doc))
	inherited := "" // fields without a comment share that of the field above
	for _, field := range spec.Fields.List {
		text := cell(field.Doc.Text())
		if text == "" {
			text = cell(field.Comment.Text())
		}
		for _, id := range field.Names {
			if !id.IsExported() {
				continue
			}
			if text == "" && inherited == "" {
				t.Errorf("%s.%s says nothing of itself", title, id.Name)
			}
			if text != "" {
				inherited = text
			} else {
				text = inherited
			}
			fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", id.Name, source(t, field.Type), text)
		}
	}
}

func findStruct(t *testing.T, folder, name string) (*ast.StructType, string) {
	t.Helper()
	for _, f := range filesOf(t, folder) {
		for _, decl := range f.syntax.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, s := range gen.Specs {
				spec := s.(*ast.TypeSpec)
				if s, ok := spec.Type.(*ast.StructType); ok && spec.Name.Name == name {
					return s, gen.Doc.Text()
				}
			}
		}
	}
	t.Fatalf("there is no struct %s in %s", name, folder)
	return nil, ""
}

// filesOf are the Go files of a folder, tests left out.
func filesOf(t *testing.T, folder string) (out []goFile) {
	t.Helper()
	for _, f := range goFiles(t) {
		if path.Dir(f.path) == folder && !strings.HasSuffix(f.path, "_test.go") {
			out = append(out, f)
		}
	}
	return out
}

func source(t *testing.T, node ast.Node) string {
	t.Helper()
	var out bytes.Buffer
	if err := printer.Fprint(&out, token.NewFileSet(), node); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(out.String()), " "), "|", "\\|")
}

// cell is a comment as a cell of a table.
func cell(doc string) string {
	return docLink.ReplaceAllString(strings.ReplaceAll(strings.Join(strings.Fields(doc), " "), "|", "\\|"), "`$1`")
}

// docLink is a reference in a Go comment.
var docLink = regexp.MustCompile(`\[(\*?[A-Z][A-Za-z.]*)\]`)
