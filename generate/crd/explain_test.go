// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/internal/generatetest"
	"github.com/steer-dev/steer/generate/load"
)

const explained = `
-- types.go --
// +groupName=example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Thing is a thing.
// +kubebuilder:resource:scope=Cluster,path=stuff
type Thing struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
	Spec Spec ` + "`json:\"spec\"`" + `
}

// Spec is what is wanted.
// +structType=atomic
type Spec struct {
	Limits ` + "`json:\",inline\"`" + `
	// Word is a text.
	// +kubebuilder:validation:MinLength=2
	// +optional
	Word Word ` + "`json:\"word\"`" + `
	// +k8s:required
	Must  string ` + "`json:\"must,omitempty\"`" + `
	Items []map[string]*Item ` + "`json:\"items\"`" + `
	When  metav1.Time ` + "`json:\"when\"`" + `
	Out   string ` + "`json:\"-\"`" + `
}

// Limits is embedded.
type Limits struct {
	Low int ` + "`json:\"low,omitzero\"`" + `
}

// Item is in a map in a list.
type Item struct {
	Name string ` + "`json:\"name\"`" + `
}

// Word is short.
// +kubebuilder:validation:MaxLength=8
type Word string
-- optional/types.go --
// +groupName=example.com
// +kubebuilder:validation:Optional
package optional

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Loose has fields that may be left out.
type Loose struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
	A string ` + "`json:\"a\"`" + `
}
`

// checked loads the sources of an archive for a generator.
func checked(t *testing.T, g *crd.Generator, archive string) *load.Program {
	t.Helper()
	p := generatetest.Load(t, txtar.Parse([]byte(archive)), crd.Markers(), "MarshalJSON", "MarshalText")
	g.Need(p)
	if err := p.Check(true); err != nil {
		t.Fatal(err)
	}
	return p
}

// declared is the declaration of a type in one of the roots.
func declared(t *testing.T, p *load.Program, name string) *load.TypeDecl {
	t.Helper()
	for _, root := range p.Roots {
		if decl := root.Decl(name); decl != nil {
			return decl
		}
	}
	t.Fatalf("no type %s", name)
	return nil
}

func TestExplainSaysHowASchemaCameAbout(t *testing.T) {
	t.Parallel()
	g := &crd.Generator{}
	p := checked(t, g, explained)
	for name, c := range map[string]struct{ kind, path, want, err string }{
		"type": {kind: "Item", want: `Item
  declared at types.go:35:6 as a struct
  its markers:
    none
  which makes:
    description: Item is in a map in a list.
    properties:
      name:
        type: string
    required:
    - name
    type: object
`},
		"type without fields": {kind: "Word", want: `Word
  declared at types.go:41:6 as string
  its markers:
    +kubebuilder:validation:MaxLength 8 (types.go:40:1)
  which makes:
    description: Word is short.
    maxLength: 8
    type: string
`},
		"field of a named type": {kind: "Thing", path: "spec.word", want: `Spec.Word
  declared at types.go:21:2 as Word
  named "word" in JSON
  optional, because of +optional
  type example.com/project.Word (types.go:41:6):
    +kubebuilder:validation:MaxLength 8 (types.go:40:1)
  the field's markers, which go before those of its type:
    +kubebuilder:validation:MinLength 2 (types.go:19:2)
    +optional {} (types.go:20:2)
  which makes:
    description: Word is a text.
    maxLength: 8
    minLength: 2
    type: string
`},
		"by its name in Go": {kind: "Thing", path: "Spec.Must", want: `Spec.Must
  declared at types.go:23:2 as string
  named "must" in JSON
  required, because of +k8s:required
  the field's markers, which go before those of its type:
    +k8s:required {} (types.go:22:2)
  which makes:
    minLength: 1
    type: string
`},
		"of an embedded struct": {kind: "Spec", path: "low", want: `Limits.Low
  declared at types.go:31:2 as int
  named "low" in JSON
  optional, because its json tag says omitempty or omitzero
  the field's markers, which go before those of its type:
    none
  which makes:
    type: integer
`},
		"through a list and a map": {kind: "Spec", path: "items[].name", want: `Item.Name
  declared at types.go:36:2 as string
  named "name" in JSON
  required, because its json tag has no omitempty and no marker says otherwise
  the field's markers, which go before those of its type:
    none
  which makes:
    type: string
`},
		"of a type with a schema of its own": {kind: "Spec", path: "when", want: `Spec.When
  declared at types.go:25:2 as metav1.Time
  named "when" in JSON
  required, because its json tag has no omitempty and no marker says otherwise
  type k8s.io/apimachinery/pkg/apis/meta/v1.Time has a schema of its own, whatever its Go form
  the field's markers, which go before those of its type:
    none
  which makes:
    format: date-time
    type: string
`},
		"not in JSON": {kind: "Spec", path: "Out", want: `Spec.Out
  declared at types.go:26:2 as string
  named "-" in JSON
  left out of the schema
  the field's markers, which go before those of its type:
    none
it is not in the schema
`},
		"optional by its package": {kind: "Loose", path: "a", want: `Loose.A
  declared at optional/types.go:11:2 as string
  named "a" in JSON
  optional, because the package says +kubebuilder:validation:Optional
  the field's markers, which go before those of its type:
    none
  which makes:
    type: string
`},
		"not a struct":  {kind: "Spec", path: "word.x", err: "Word is no struct: it has no field x"},
		"no such field": {kind: "Thing", path: "spec.nope", err: "Spec has no field nope"},
		"basic type":    {kind: "Spec", path: "must.x", err: "Spec.Must is string: it has no field x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := g.Explain(p, declared(t, p, c.kind), c.path)
			if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, strings.ReplaceAll(got, p.Dir+"/", "")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPositionIsWhereAFieldIsDeclared(t *testing.T) {
	t.Parallel()
	g := &crd.Generator{}
	p := checked(t, g, explained)
	for path, want := range map[string]string{
		"":                  "types.go:8:6",
		"spec":              "types.go:11:2",
		"spec.word":         "types.go:21:2",
		"spec.low":          "types.go:31:2",
		"spec.items[]{}":    "types.go:24:2",
		"spec.items[].name": "types.go:36:2",
		"spec.nope":         "types.go:16:6", // the type that would have it
		"spec.must.x":       "types.go:23:2", // nothing is below it
	} {
		got := strings.TrimPrefix(g.Position(p, declared(t, p, "Thing"), path).String(), p.Dir+"/")
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestNamesOfKindsFollowTheirMarkers(t *testing.T) {
	t.Parallel()
	p := checked(t, &crd.Generator{}, explained)
	for name, want := range map[string]struct {
		resource string
		cluster  bool
	}{"Thing": {"stuff", true}, "Loose": {"looses", false}} {
		set := p.TypeMarkers(declared(t, p, name))
		if got := crd.ResourceName(name, set); got != want.resource {
			t.Errorf("%s: resource %s, want %s", name, got, want.resource)
		}
		if got := crd.ClusterScoped(set); got != want.cluster {
			t.Errorf("%s: cluster-scoped %v", name, got)
		}
	}
}
