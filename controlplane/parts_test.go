// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/storage"
)

var update = flag.Bool("update", false, "rewrite what these tests compare with")

// noAdmission is an admission of options.
type noAdmission struct{}

func (noAdmission) Admit(context.Context, *resource.AdmissionRequest) error    { return nil }
func (noAdmission) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

// wholeList is the list of a plane with everything that options can add.
func wholeList(t *testing.T) component.List {
	t.Helper()
	p := &Plane{
		store:   storage.NewMemory(storage.MemoryOptions{}),
		options: Options{Workloads: &workloads.Options{}, Admission: noAdmission{}}.withDefaults(),
	}
	list, _, err := p.declare()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPartsListEveryControllerAndPlugin compares the list with the types of the source
// that have the methods of a controller or of an admission plugin.
func TestPartsListEveryControllerAndPlugin(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	names := map[string]int{}
	for _, p := range wholeList(t) {
		names[p.Name]++
		for _, v := range []any{p.Admission, p.Controller} {
			if v == nil || v == any(noAdmission{}) {
				continue
			}
			of := reflect.TypeOf(v)
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			listed[of.PkgPath()+"."+of.Name()] = true
		}
		if p.Controller != nil && p.Controller.Name() != p.Name {
			t.Errorf("the controller %q is in the part %q", p.Controller.Name(), p.Name)
		}
	}
	for name, n := range names {
		if n > 1 {
			t.Errorf("%d parts have the name %q", n, name)
		}
	}
	declared := controllersAndPlugins(t)
	if len(declared) < 30 {
		t.Fatalf("%d controllers and plugins in the source: the search is broken", len(declared))
	}
	for _, name := range declared {
		if !listed[name] {
			t.Errorf("%s is in no part", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s is in a part, but not found in the source: the search is broken", name)
	}
}

// controllersAndPlugins returns the types below this folder with a method Sync(View, Time)
// and with a method Validate or Admit of an AdmissionRequest, but for those that others embed.
func controllersAndPlugins(t *testing.T) []string {
	t.Helper()
	found, embedded := map[string]bool{}, map[string]bool{}
	look := func(file string) error {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Join("github.com/steer-dev/steer/controlplane", filepath.ToSlash(filepath.Dir(file)))
		for _, decl := range syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					continue
				}
				receiver := strings.TrimPrefix(typeText(d.Recv.List[0].Type), "*")
				var parameters []string
				for _, p := range d.Type.Params.List {
					parameters = append(parameters, typeText(p.Type))
				}
				switch signature := d.Name.Name + "(" + strings.Join(parameters, ",") + ")"; signature {
				case "Sync(storage.View,time.Time)", "Admit(context.Context,*resource.AdmissionRequest)", "Validate(context.Context,*resource.AdmissionRequest)":
					found[pkg+"."+receiver] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					s, _ := spec.(*ast.TypeSpec)
					if s == nil {
						continue
					}
					if of, isStruct := s.Type.(*ast.StructType); isStruct {
						for _, f := range of.Fields.List {
							if len(f.Names) == 0 {
								embedded[pkg+"."+strings.TrimPrefix(typeText(f.Type), "*")] = true
							}
						}
					}
				}
			}
		}
		return nil
	}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		return look(file)
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for name := range found {
		if !embedded[name] {
			out = append(out, name)
		}
	}
	return out
}

// typeText is a type as it is written, as far as this test compares it.
func typeText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + typeText(e.X)
	case *ast.SelectorExpr:
		return typeText(e.X) + "." + e.Sel.Name
	}
	return "?"
}

func TestPluginsAreInTheOrderOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	want := []string{
		"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "TaintNodesByCondition", "PodSecurity", "Priority", "DefaultTolerationSeconds",
		"DefaultStorageClass", "StorageObjectInUseProtection", "PersistentVolumeClaimResize", "RuntimeClass",
		"CertificateApproval", "CertificateSigning", "ClusterTrustBundleAttest", "CertificateSubjectRestriction", "DefaultIngressClass",
		"PodTopologyLabels", "NodeDeclaredFeatureValidator", "PodResizeValidator",
		"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook", "ResourceQuota",
	}
	if got := Plugins(); !slices.Equal(got, want) {
		t.Errorf("the plugins are\n%q, want\n%q", got, want)
	}
	var last string
	for _, p := range wholeList(t) {
		if p.Admission != nil {
			last = p.Name
		}
	}
	if last != "ResourceQuota" {
		t.Errorf("%q is the last of the chain: what refuses after the quota leaves charges behind", last)
	}
}

// TestPartsArePublished keeps the tables of docs/kinds.md equal to the list.
func TestPartsArePublished(t *testing.T) {
	t.Parallel()
	const paper, begin, end = "../docs/kinds.md", "<!-- parts -->\n", "<!-- /parts -->"
	list := wholeList(t)
	var want strings.Builder
	want.WriteString("| admission, in order | of | can be left out |\n|---|---|---|\n")
	for _, p := range list {
		if p.Admission != nil {
			resources := "every resource"
			if len(p.For) > 0 {
				resources = strings.Join(p.For, ", ")
			}
			fmt.Fprintf(&want, "| %s | %s | %s |\n", p.Name, resources, yesNo(p.Optional))
		}
	}
	want.WriteString("\n| controller | can be left out |\n|---|---|\n")
	for _, p := range list {
		if p.Controller != nil {
			fmt.Fprintf(&want, "| %s | %s |\n", p.Name, yesNo(p.Optional))
		}
	}
	text, err := os.ReadFile(paper)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(text), begin)
	shown, tail, ends := strings.Cut(rest, end)
	switch {
	case !begins || !ends:
		t.Fatalf("%s has no part %q", paper, strings.TrimSpace(begin))
	case shown == want.String():
	case !*update:
		t.Fatalf("the tables of %s are stale: go test ./controlplane -run %s -update", paper, t.Name())
	default:
		if err := os.WriteFile(paper, []byte(head+begin+want.String()+end+tail), 0o644); err != nil { // a page is for all users
			t.Fatal(err)
		}
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
