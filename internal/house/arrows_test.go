// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bytes"
	"go/ast"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// arrows says which of our folders a folder may import, beside what those may
// import in turn. It is the table of ARCHITECTURE.md.
var arrows = map[string][]string{
	"storage":       {},
	"apiserver":     {"storage", "crdvalidation", "certificate", "internal"},
	"crdvalidation": {},
	"certificate":   {},
	"controlplane":  {"apiserver", "storage", "crdvalidation"},

	"client":     {"internal"},
	"trace":      {},
	"queue":      {"trace"},
	"cache":      {"client"},
	"controller": {"cache", "queue", "client", "trace"},
	"webhook":    {"client", "trace", "certificate"},
	"manager":    {"controller", "webhook", "cache", "queue", "client", "trace"},
	".":          {"manager", "controller", "internal"},
	"internal":   {},

	"generate":  {"crdvalidation"},
	"scaffold":  {"generate", "internal"},
	"steertest": {".", "controlplane", "manager", "client"},
	"sim":       {"steertest", "controlplane", "manager"},
	"dashboard": {"manager", "trace"},

	// An operator links the front door and the runtime half, never the server half.
	"examples": {"."},
	// The command line and what proves the house may import everything.
	"cmd": {"dashboard", "sim", "steertest", "scaffold", "generate", "controlplane", "manager", ".", "examples", "internal"},
}

// allowed is the closure of arrows for one folder.
func allowed(folder string) map[string]bool {
	seen := map[string]bool{folder: true}
	var visit func(string)
	visit = func(f string) {
		for _, next := range arrows[f] {
			if !seen[next] {
				seen[next] = true
				visit(next)
			}
		}
	}
	visit(folder)
	return seen
}

func TestImportArrowsPointDown(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t) {
		folder := topFolder(file.path)
		if _, known := arrows[folder]; !known {
			t.Errorf("%s: the folder %q has no row in the table of arrows (internal/house/arrows_test.go) and ARCHITECTURE.md", file.path, folder)
			continue
		}
		ok := allowed(folder)
		for _, imp := range file.imports() {
			rel, ours := strings.CutPrefix(imp, modulePath)
			if !ours {
				continue
			}
			target := topFolder(path.Join(strings.TrimPrefix(rel, "/"), "x.go"))
			// No test of a program is imported by anything, and none can be outside of package main.
			// The API of steertest mentions manager.Manager. The house tests list the flags of an operator.
			test := strings.HasSuffix(file.path, "_test.go")
			external := test && (file.syntax.Name.Name == "main" || strings.HasSuffix(file.syntax.Name.Name, "_test"))
			if ok[target] || test && target == "internal" || external && (slices.Contains([]string{"steertest", "sim", "manager"}, target) || folder == "internal" && target == ".") {
				continue
			}
			t.Errorf("%s imports %s: %s may import only %s", file.path, imp, folder, strings.Join(sortedKeys(ok), ", "))
		}
	}
}

// TestExamplesDoNotLinkTheServerHalf nor the page, which an operator has only where its author
// adds it.
func TestExamplesDoNotLinkTheServerHalf(t *testing.T) {
	t.Parallel()
	for _, pkg := range goList(t, "-deps", "-f", "{{.ImportPath}}", ".", "./examples/...") {
		for _, server := range []string{"storage", "apiserver", "controlplane", "dashboard"} {
			if full := modulePath + "/" + server; pkg == full || strings.HasPrefix(pkg, full+"/") {
				t.Errorf("an example links %s: operators link the runtime half alone, and the page where they add it", pkg)
			}
		}
	}
}

// TestOperatorsLinkPlainGo keeps out of an operator's binary, as far as it is ours,
// what the compiler does not check: package unsafe, raw system calls, linked names.
func TestOperatorsLinkPlainGo(t *testing.T) {
	t.Parallel()
	ours := 0
	for _, line := range goList(t, "-deps", "-f", "{{.ImportPath}}={{join .Imports \",\"}}", "./examples/...") {
		pkg, imports, _ := strings.Cut(line, "=")
		if pkg != modulePath && !strings.HasPrefix(pkg, modulePath+"/") {
			continue
		}
		ours++
		for imp := range strings.SplitSeq(imports, ",") {
			if imp == "unsafe" || imp == "C" || strings.HasPrefix(imp, "golang.org/x/sys/") {
				t.Errorf("%s imports %s: the runtime half does without", pkg, imp)
			}
		}
	}
	if ours < 10 {
		t.Fatalf("go list names %d packages of ours: the measurement is broken", ours)
	}
	for _, file := range goFiles(t) {
		for _, group := range file.syntax.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:linkname") {
					t.Errorf("%s has a linked name", file.path)
				}
			}
		}
	}
}

// maxOperatorPackages is how many third-party packages a minimal operator may compile;
// docs/depend.md names the reason of those that came later.
const maxOperatorPackages = 171

func TestMinimalOperatorIsLight(t *testing.T) {
	t.Parallel()
	var third []string
	for _, pkg := range goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./examples/replicas") {
		if pkg != "" && pkg != modulePath && !strings.HasPrefix(pkg, modulePath+"/") {
			third = append(third, pkg)
		}
	}
	if len(third) == 0 {
		t.Fatal("go list names no third-party package: the measurement is broken")
	}
	t.Logf("examples/replicas compiles %d third-party packages:\n%s", len(third), strings.Join(third, "\n"))
	if len(third) > maxOperatorPackages {
		t.Errorf("examples/replicas compiles %d third-party packages, want at most %d", len(third), maxOperatorPackages)
	}
	for _, heavy := range []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/discovery", "k8s.io/client-go/dynamic", "google.golang.org/grpc", "go.opentelemetry.io/otel/sdk"} {
		if i := slices.IndexFunc(third, func(p string) bool { return p == heavy || strings.HasPrefix(p, heavy+"/") }); i >= 0 {
			t.Errorf("examples/replicas links %s", third[i])
		}
	}
}

// maxSteerPackages bounds the packages of others that the command line links, those of
// Go's library included: what is initialised before main, and what the kernel maps. Ours
// do not count: they initialise nothing, and dividing one links no more code.
const maxSteerPackages = 657

func TestTheCommandLineIsLight(t *testing.T) {
	t.Parallel()
	all := goList(t, "-deps", "-f", "{{.ImportPath}}", "./cmd/steer")
	if !slices.Contains(all, modulePath+"/controlplane") {
		t.Fatal("go list does not name the control plane: the measurement is broken")
	}
	all = slices.DeleteFunc(all, func(p string) bool { return p == modulePath || strings.HasPrefix(p, modulePath+"/") })
	t.Logf("cmd/steer links %d packages of others", len(all))
	if len(all) > maxSteerPackages {
		t.Errorf("cmd/steer links %d packages of others, want at most %d", len(all), maxSteerPackages)
	}
	for _, heavy := range []string{
		"google.golang.org/grpc", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters",
		"go.opentelemetry.io/contrib", "sigs.k8s.io/apiserver-network-proxy", "k8s.io/apiserver/pkg/server", "k8s.io/apiserver/pkg/util/webhook",
	} {
		if i := slices.IndexFunc(all, func(p string) bool { return p == heavy || strings.HasPrefix(p, heavy+"/") }); i >= 0 {
			t.Errorf("cmd/steer links %s: find out through whom with go list -deps", all[i])
		}
	}
}

// TestNothingAsksForMethodsByName keeps out what makes the linker keep every
// exported method of every type, because any of them might be asked for: 12 MB of
// the command line, and more of a small operator.
func TestNothingAsksForMethodsByName(t *testing.T) {
	t.Parallel()
	asks := []string{"MethodByName", "SetVersionTemplate", "SetUsageTemplate", "SetHelpTemplate"} // the last three are cobra's
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file.path, "_test.go") {
			continue
		}
		for _, imp := range file.imports() {
			if imp == "text/template" || imp == "html/template" {
				t.Errorf("%s imports %s, which calls methods by name: see filler in generate/client", file.path, imp)
			}
		}
		ast.Inspect(file.syntax, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(asks, sel.Sel.Name) {
				t.Errorf("%s uses %s, which calls methods by name", file.path, sel.Sel.Name)
			}
			return true
		})
	}
}

func topFolder(file string) string {
	dir := path.Dir(file)
	if dir == "." {
		return "."
	}
	top, _, _ := strings.Cut(dir, "/")
	return top
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.Fields(string(out))
}
