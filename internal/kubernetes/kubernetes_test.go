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
	root := write(t, map[string]string{"shop/v1/types.go": text, "shop/v1/register.go": "package v1", "helper/types.go": "package helper"})
	if err := s.readTypes(root); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReportSaysWhatTypesChange(t *testing.T) {
	t.Parallel()
	was, is := types(t, olderTypes), types(t, newerTypes)
	mentioned := mentions{"colour": {"controlplane/core/widget.go"}}
	var out strings.Builder
	for _, s := range []section{sectionKinds, sectionFields, sectionValues} {
		report(&out, s, compare(was[s], is[s]), mentioned)
	}
	want := `
## kinds: 1 new, 0 gone, 0 changed

### new

- shop/v1 Gadget; +genclient (not named)

## fields: 1 new, 1 gone, 1 changed

### new

- shop/v1 WidgetSpec.colour; +default="red"; +featureGate=Colours; type *string (named in controlplane/core/widget.go)

### gone

- shop/v1 WidgetSpec.old (not named)

### changed

- shop/v1 WidgetSpec.size; no longer +k8s:alpha(since: "1.36")=+k8s:minimum=0; +k8s:minimum=0 (not named)

## values of enums: 1 new, 0 gone, 0 changed

### new

- shop/v1 Mode "Slow" (not named)
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

func TestNewestIsAReleaseIfThereIsOne(t *testing.T) {
	t.Parallel()
	all := []string{"v0.37.0", "v0.37.2", "v0.37.10", "v0.37.11-rc.1", "v0.38.0-alpha.2", "v0.38.0-beta.0"}
	for want, expected := range map[string]string{
		"v0.37": "v0.37.10", "v0.37.2": "v0.37.2", "v0.38": "v0.38.0-beta.0", "v0.3": "", "v0.39": "",
	} {
		if got := newest(all, want); got != expected {
			t.Errorf("%s: %q, want %q", want, got, expected)
		}
	}
}

func TestOnlyVersionsThatAreServedAreCompared(t *testing.T) {
	t.Parallel()
	got := served(map[string]properties{"shop/v1 A.b": nil, "shop/v1beta1 A.b": nil, "shop/v2alpha1 A.b": nil, "AlphaGate": nil})
	if diff := cmp.Diff(map[string]properties{"shop/v1 A.b": nil, "AlphaGate": nil}, got); diff != "" {
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
