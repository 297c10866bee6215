// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/load"
)

func TestDefinitionsReferToEachOther(t *testing.T) {
	t.Parallel()
	const source = `
-- types.go --
// +groupName=example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Thing is a thing.
type Thing struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
	Spec Same ` + "`json:\"spec\"`" + `
}

// Same is another name.
type Same Spec

// Spec is what is wanted.
type Spec struct {
	Base ` + "`json:\",inline\"`" + `
	// +nullable
	Items []Item ` + "`json:\"items\"`" + `
	Ratio float64 ` + "`json:\"ratio\"`" + `
	ByName map[string]Item ` + "`json:\"byName\"`" + `
	Word Word ` + "`json:\"word\"`" + `
	hidden string
}

// Base is embedded.
type Base struct {
	Own *Spec ` + "`json:\"own\"`" + `
}

// Item is an item.
type Item struct{ A string ` + "`json:\"a\"`" + ` }

// Word is a text.
type Word string
`
	p := checked(t, &crd.Generator{}, source)
	got, err := crd.Definitions(p, []*load.TypeDecl{declared(t, p, "Thing")})
	if err != nil || len(p.Problems()) > 0 {
		t.Fatal(err, p.Problems())
	}
	const own = "com.example.project."
	var names []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if short, ok := strings.CutPrefix(name, own); ok {
			names = append(names, short)
		}
	}
	if want := []string{"Base", "Item", "Same", "Spec", "Thing", "Word"}; !slices.Equal(names, want) {
		t.Errorf("definitions %v, want %v", names, want)
	}
	link := func(name string) map[string]any { return map[string]any{"$ref": "#/definitions/" + name} }
	item := link(own + "Item")
	spec := map[string]any{
		"description": "Spec is what is wanted.", "type": "object",
		"required": []any{"byName", "items", "own", "ratio", "word"},
		"properties": map[string]any{
			"own":    link(own + "Spec"),
			"items":  map[string]any{"type": "array", "items": item},
			"ratio":  map[string]any{"type": "number"},
			"byName": map[string]any{"type": "object", "additionalProperties": item},
			"word":   link(own + "Word"),
		},
	}
	same := maps.Clone(spec)
	same["description"] = "Same is another name."
	for name, want := range map[string]any{"Spec": spec, "Same": same} {
		if diff := cmp.Diff(want, plain(t, got[own+name])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	thing := plain(t, got[own+"Thing"]).(map[string]any)["properties"].(map[string]any)
	for name, want := range map[string]any{
		"metadata": link("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
		"spec":     link(own + "Same"),
	} {
		if diff := cmp.Diff(want, thing[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// Unlike in a CustomResourceDefinition, metadata is complete.
	meta, ok := got["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].(map[string]any)
	if !ok || meta["properties"].(map[string]any)["generation"] == nil {
		t.Errorf("metadata is defined as %v", meta)
	}
}

func TestSchemasAreThoseOfDefinitions(t *testing.T) {
	t.Parallel()
	p := checked(t, &crd.Generator{}, explained)
	kinds := crd.Kinds(p)
	at := slices.IndexFunc(kinds, func(k crd.Kind) bool { return k.Spec.Name.Name == "Loose" })
	if at < 0 || kinds[at].Group != "example.com" || kinds[at].Version != "optional" {
		t.Fatalf("kinds %v", kinds)
	}
	limit := 0
	got := plain(t, crd.NewSchemas(p, crd.Options{}).Of(kinds[at]).Props(&limit))
	want := map[string]any{"type": "object", "properties": map[string]any{
		"apiVersion": map[string]any{"type": "string"},
		"kind":       map[string]any{"type": "string"},
		"metadata":   map[string]any{"type": "object"},
		"a":          map[string]any{"type": "string"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// plain is a value as it is in JSON.
func plain(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
