// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package creation

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	own "github.com/steer-dev/steer/apiserver/internal/typed"
)

// gearSchema has every relationship that fields and elements can have with their owners.
const gearSchema = `
types:
- name: gear
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
    - {name: spec, type: {namedType: spec}}
    - {name: status, type: {map: {fields: [{name: turns, type: {scalar: numeric}}]}}}
- name: spec
  map:
    fields:
    - {name: size, type: {scalar: numeric}}
    - {name: open, type: {scalar: boolean}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: fixed, type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: tags, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: plain, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: teeth, type: {list: {elementType: {namedType: tooth}, elementRelationship: associative, keys: [name, angle]}}}
- name: tooth
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: angle, type: {scalar: numeric}}
    - {name: note, type: {scalar: string}}
`

// gear is the Go type of the schema.
type gear struct {
	metav1.TypeMeta `json:",inline"`
	Spec            gearSpec   `json:"spec,omitempty"`
	Status          gearStatus `json:"status,omitempty"`
}

type gearSpec struct {
	Size   *int64            `json:"size,omitempty"`
	Open   bool              `json:"open,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Fixed  map[string]string `json:"fixed,omitempty"`
	Tags   []string          `json:"tags,omitempty"`
	Plain  []string          `json:"plain,omitempty"`
	Teeth  []tooth           `json:"teeth,omitempty"`
}

type tooth struct {
	Name  string `json:"name"`
	Angle int64  `json:"angle"`
	Note  string `json:"note,omitempty"`
}

type gearStatus struct {
	Turns int64 `json:"turns,omitempty"`
}

func gearType(t *testing.T) *fields.Type {
	t.Helper()
	parser, err := typed.NewParser(gearSchema)
	if err != nil {
		t.Fatal(err)
	}
	name := "gear"
	root := fields.Compile(&parser.Schema, schema.TypeRef{NamedType: &name})
	if root == nil {
		t.Fatal("the schema is not compiled")
	}
	return root
}

// randomGear returns an object with some of its fields set.
func randomGear(r *rand.Rand) *gear {
	g := &gear{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Gear"}}
	word := func() string { return string(rune('a' + r.IntN(3))) }
	words := func() (out []string) {
		for _, i := range r.Perm(3)[:r.IntN(3)] {
			out = append(out, string(rune('a'+i)))
		}
		return out
	}
	pairs := func() map[string]string {
		out := map[string]string{}
		for range r.IntN(3) {
			out[word()] = word()
		}
		return out
	}
	for _, set := range []func(){
		func() { n := int64(r.IntN(3)); g.Spec.Size = &n }, func() { g.Spec.Open = true }, func() { g.Spec.Labels = pairs() }, func() { g.Spec.Fixed = pairs() },
		func() { g.Spec.Tags = words() }, func() { g.Spec.Plain = words() }, func() { g.Status.Turns = int64(r.IntN(3)) },
		func() {
			for _, name := range words() {
				g.Spec.Teeth = append(g.Spec.Teeth, tooth{Name: name, Angle: int64(r.IntN(2)), Note: word()[:r.IntN(2)]})
			}
		},
	} {
		if r.IntN(2) == 0 {
			set()
		}
	}
	return g
}

func shown(t *testing.T, g *gear) []byte {
	t.Helper()
	raw, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func inText(t *testing.T, g *gear) fields.Object {
	t.Helper()
	text, ok := own.EncodeCanonically(g)
	if !ok {
		t.Fatalf("no text of %s", shown(t, g))
	}
	return fields.Split(text)
}

func TestCreationOwnsWhatAComparisonWithNothingAdds(t *testing.T) {
	t.Parallel()
	root := gearType(t)
	resets, ok := fields.ReadText(`{"f:status":{}}`)
	if !ok {
		t.Fatal("the resets are not read")
	}
	c := New(root, &gear{}, resets)
	if c == nil {
		t.Fatal("the Go type is not supported")
	}
	owned := 0
	for seed := range uint64(1000) {
		g := randomGear(rand.New(rand.NewPCG(seed, 6)))
		if seed == 0 {
			g = &gear{TypeMeta: g.TypeMeta}
		}
		if fresh := reflect.DeepEqual(*g, gear{TypeMeta: g.TypeMeta}); fresh != c.Fresh(g) {
			t.Fatalf("seed %d: whether %s is fresh: want %v", seed, shown(t, g), fresh)
		}
		got, ok := c.Of(g)
		if !ok {
			continue
		}
		owned++
		tree, ok := fields.Compare(root, inText(t, &gear{TypeMeta: g.TypeMeta}), inText(t, g))
		if !ok {
			t.Fatalf("seed %d: no comparison of %s", seed, shown(t, g))
		}
		tree.Prune(resets)
		if tree.Gains(); tree.Empty() != (got == nil) || got != nil && got.GetRawString() != tree.Text() {
			t.Fatalf("seed %d: %s owns %v, want %s", seed, shown(t, g), got, tree.Text())
		}
	}
	if owned < 800 {
		t.Errorf("of %d of 1000 creations the fields were found in one pass", owned)
	}
	if New(root, &gearSpec{}, fields.None()) != nil || New(nil, &gear{}, fields.None()) != nil {
		t.Error("a type without TypeMeta, or without a schema, is supported")
	}
}
