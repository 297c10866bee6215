// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const olderTypes = `package v1

// +genclient
// +k8s:prerelease-lifecycle-gen:introduced=1.2

// Widget is a widget.
type Widget struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
	Spec WidgetSpec   ` + "`json:\"spec\"`" + `
}

type WidgetSpec struct {
	// +optional
	// +k8s:alpha(since: "1.36")=+k8s:minimum=0
	Size int32 ` + "`json:\"size,omitempty\"`" + `
	Mode Mode ` + "`json:\"mode\"`" + `
	// Old is old.
	Old string ` + "`json:\"old\"`" + `
	hidden int
}

type Mode string

const ModeFast Mode = "Fast"

// WidgetList is no kind of its own.
type WidgetList struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
}
`

const newerTypes = `package v1

// +genclient
// +k8s:prerelease-lifecycle-gen:introduced=1.2

// Widget is a widget, in other words.
type Widget struct {
	metav1.TypeMeta   ` + "`json:\"\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
	Spec WidgetSpec   ` + "`json:\"spec\"`" + `
}

type WidgetSpec struct {
	// +optional
	// +k8s:minimum=0
	Size int32 ` + "`json:\"size,omitempty\"`" + `
	// +featureGate=Colours
	// +default="red"
	Colour *string ` + "`json:\"colour,omitempty\"`" + `
	Mode Mode ` + "`json:\"mode\"`" + `
}

// Loose is part of nothing.
type Loose struct {
	End string ` + "`json:\"end\"`" + `
}

type Mode string

const (
	ModeFast Mode = "Fast"
	ModeSlow Mode = "Slow"
)

// +genclient

// Gadget is new.
type Gadget struct {
	metav1.TypeMeta ` + "`json:\"\"`" + `
}
`

const offers = `package v1beta1

// +genclient

// Offer is not served unless a server is told to.
type Offer struct {
	metav1.TypeMeta ` + "`json:\"\"`" + `
}
`

const gates = `package features

var known = map[featuregate.Feature]featuregate.VersionedSpecs{
	Colours: {
		{Version: version.MustParse("1.36"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.37"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
	},
}
`

const printers = `package internalversion

func add() {
	widgetColumnDefinitions := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Size", Type: "integer", Priority: 1},
	}
	_ = widgetColumnDefinitions
}
`

// write makes a folder with files of the given names and texts.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func types(t *testing.T, text string) surface {
	t.Helper()
	s := surface{}
	files := map[string]string{"shop/v1/types.go": text, "shop/v1/register.go": "package v1", "helper/types.go": "package helper"}
	if text == newerTypes {
		files["shop/v1beta1/types.go"], files["shop/v1beta1/register.go"] = offers, "package v1beta1"
	}
	if err := s.readTypes(write(t, files)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReportSaysWhatTypesChangeKindByKind(t *testing.T) {
	t.Parallel()
	was, is := types(t, olderTypes), types(t, newerTypes)
	if err := is.readColumns(write(t, map[string]string{"printers.go": printers})); err != nil {
		t.Fatal(err)
	}
	was[sectionColumns] = map[string]properties{`widget "Name"`: {"place 1", `type "string"`}}
	h := here{
		mentioned:   mentions{"colour": {"controlplane/core/widget.go"}, "old": {"a.go", "b.go", "c.go", "d.go"}},
		definitions: map[string]string{"shop/v1 Widget": "controlplane/core/widget.go"},
	}
	var out strings.Builder
	reportKinds(&out, was, is, h, false)
	want := `
## shop/v1 Gadget, no definition here

- new kind shop/v1 Gadget; +genclient

## shop/v1 Widget, here controlplane/core/widget.go

- new field WidgetSpec.colour; +default="red"; +featureGate=Colours; type *string (named in controlplane/core/widget.go)
- gone field WidgetSpec.old (a word in 4 files)
- changed field WidgetSpec.size; +k8s:minimum=0 (not named)
- new value Mode "Slow" (not named)
- new column widget "Size"; place 2; priority 1; type "integer" (not named)

## of no kind

- new field Loose.end; type string (not named)

## versions that are off by default

- shop/v1beta1 Offer: new kind shop/v1beta1 Offer; +genclient

## files that define those kinds

- controlplane/core/widget.go
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestGatesHaveTheStageOfTheMinor(t *testing.T) {
	t.Parallel()
	root := write(t, map[string]string{"kube_features.go": gates})
	for minor, want := range map[int]properties{
		35: nil,
		36: {"default false", "stage alpha"},
		37: {"default true", "locked", "stage stable"},
	} {
		s := surface{}
		if err := s.readGates(root, minor); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s[sectionGates]["Colours"]); diff != "" {
			t.Errorf("1.%d: %s", minor, diff)
		}
	}
}

func TestColumnsHaveAPlaceAndAPriority(t *testing.T) {
	t.Parallel()
	s := surface{}
	if err := s.readColumns(write(t, map[string]string{"printers.go": printers})); err != nil {
		t.Fatal(err)
	}
	want := map[string]properties{
		`widget "Name"`: {"place 1", `type "string"`},
		`widget "Size"`: {"place 2", "priority 1", `type "integer"`},
	}
	if diff := cmp.Diff(want, s[sectionColumns]); diff != "" {
		t.Error(diff)
	}
}

func TestFunctionsDifferByWhatTheyDo(t *testing.T) {
	t.Parallel()
	read := func(text string) map[string]properties {
		functions, err := readFunctions(write(t, map[string]string{"pkg/apis/shop/v1/defaults.go": text}), "pkg/apis", func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]properties{}
		for name, text := range functions {
			out[name] = properties{text}
		}
		return out
	}
	was := read("package v1\n// Same is said so.\nfunc Same() int { return 1 }\nfunc Other() int { return 1 }\nfunc Gone() {}\n")
	is := read("package v1\n// Same is said otherwise.\nfunc Same() int {\n\treturn 1 // one\n}\nfunc Other() int { return 2 }\nfunc New() {}\n")
	want := []string{"", "- pkg/apis/shop/v1: +New -Gone ~Other"}
	if diff := cmp.Diff(want, byPackage(compare(was, is))); diff != "" {
		t.Error(diff)
	}
	if functions, err := readFunctions(t.TempDir(), "pkg/apis", nil); err != nil || len(functions) != 0 {
		t.Errorf("a folder that is not there: %v, %v", functions, err)
	}
}

func TestReleaseIsTheNewestThatIsPublished(t *testing.T) {
	t.Parallel()
	staging := []string{"v0.36.3", "v0.36.6", "v0.37.0", "v0.37.2", "v0.37.10", "v0.37.11-rc.1", "v0.38.0-alpha.2", "v0.38.0-beta.0", "v0.39.0-alpha.0", "v0.40.0", "v0.40.1"}
	server := []string{"v1.36.3", "v1.37.2", "v1.38.0-beta.0", "v1.40.1-rc.0"}
	for suffix, want := range map[string]release{
		".36":   {staging: "v0.36.3", server: "v1.36.3"}, // the server of its newest patch is not published
		".37":   {staging: "v0.37.2", server: "v1.37.2"},
		".37.0": {staging: "v0.37.0"},
		".38":   {staging: "v0.38.0-beta.0", server: "v1.38.0-beta.0"},
		".39":   {staging: "v0.39.0-alpha.0"},
		".40":   {staging: "v0.40.1"}, // a server before the first release is none of it
	} {
		got, err := choose(0, suffix, staging, server)
		if err != nil || got.staging != want.staging || got.server != want.server {
			t.Errorf("1%s: %v %v %v, want %v %v", suffix, got.staging, got.server, err, want.staging, want.server)
		}
	}
	if _, err := choose(0, ".3", staging, server); err == nil || !strings.Contains(err.Error(), "no version 1.3 of k8s.io/api is published") {
		t.Error(err)
	}
	got, err := choose(38, ".38", staging, server)
	if err != nil || got.released() {
		t.Error(got, err)
	}
	want := []string{"k8s.io/api@v0.38.0-alpha.2", "k8s.io/api@v0.38.0-beta.0", "k8s.io/kubernetes@v1.38.0-beta.0"}
	if diff := cmp.Diff(want, got.published); diff != "" {
		t.Error(diff)
	}
}

func TestDefinitionsAreFoundByGroupVersionAndKind(t *testing.T) {
	t.Parallel()
	got, err := readDefinitions(write(t, map[string]string{
		"shop/widget.go": "package shop\nimport shopv1 \"k8s.io/api/shop/v1\"\nvar _ = kind.Definition[shopv1.Widget, *shopv1.Widget]{}\n",
		"shop/gadget.go": "package shop\nimport \"k8s.io/api/shop/v2\"\nvar _ = kind.Definition[v2.Gadget, gadget]{}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{"shop/v1 Widget": "widget.go", "shop/v2 Gadget": "gadget.go"} {
		if filepath.Base(got[kind]) != want {
			t.Errorf("%s: %q, want %s", kind, got[kind], want)
		}
	}
}

func TestOnlyWhatIsServedIsCompared(t *testing.T) {
	t.Parallel()
	got := served(map[string]properties{"shop/v1 A.b": nil, "shop/v1beta1 A.b": nil, "shop/v2alpha1 A.b": nil, "AlphaGate": {"+k8s:alpha(since: \"1.37\")=+k8s:required", "+k8s:required"}})
	if diff := cmp.Diff(map[string]properties{"shop/v1 A.b": nil, "AlphaGate": {"+k8s:required"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnknownVersionIsRefused(t *testing.T) {
	t.Parallel()
	for _, written := range []string{"", "37", "2.1", "1.x", "latest"} {
		if _, err := find(t.Context(), written); err == nil || !strings.Contains(err.Error(), "give one such as") {
			t.Errorf("%q: %v", written, err)
		}
	}
}
