// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/steer-dev/steer/apiserver/internal/wire"
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
    - {name: status, type: {namedType: status}}
- name: spec
  map:
    fields:
    - {name: size, type: {scalar: numeric}}
    - {name: open, type: {scalar: boolean}}
    - {name: colour, type: {scalar: string}}
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
- name: status
  map:
    fields:
    - {name: turns, type: {scalar: numeric}}
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
	Colour string            `json:"colour,omitempty"`
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

// library is the schema in the forms of the merge library and of this package.
type library struct {
	parser *typed.Parser
	own    *Type
}

func newLibrary(t *testing.T) library {
	t.Helper()
	parser, err := typed.NewParser(gearSchema)
	if err != nil {
		t.Fatal(err)
	}
	name := "gear"
	own := Compile(&parser.Schema, schema.TypeRef{NamedType: &name})
	if own == nil {
		t.Fatal("the schema is not compiled")
	}
	return library{parser, own}
}

func (l library) typed(t *testing.T, object map[string]any) *typed.TypedValue {
	t.Helper()
	v, err := l.parser.Type("gear").FromUnstructured(object)
	if err != nil {
		t.Fatalf("%v: %v", object, err)
	}
	return v
}

// randomGear returns an object of the schema. Few names and values make equal ones likely.
func randomGear(r *rand.Rand) map[string]any {
	word := func() string { return string(rune('a' + r.IntN(3))) }
	maybe := func(in map[string]any, name string, value func() any) {
		if r.IntN(2) == 0 {
			in[name] = value()
		}
	}
	words := func() any {
		out := []any{}
		for _, i := range r.Perm(3)[:r.IntN(3)] {
			out = append(out, string(rune('a'+i)))
		}
		return out
	}
	pairs := func() any {
		out := map[string]any{}
		for range r.IntN(3) {
			out[word()] = word()
		}
		return out
	}
	spec := map[string]any{}
	maybe(spec, "size", func() any { return int64(r.IntN(3)) })
	maybe(spec, "open", func() any { return true })
	maybe(spec, "colour", func() any { return word() })
	maybe(spec, "labels", pairs)
	maybe(spec, "fixed", pairs)
	maybe(spec, "tags", words)
	maybe(spec, "plain", words)
	maybe(spec, "teeth", func() any {
		out := []any{}
		for _, i := range r.Perm(3)[:r.IntN(3)] {
			one := map[string]any{"name": string(rune('a' + i)), "angle": int64(r.IntN(2))}
			maybe(one, "note", func() any { return word() })
			out = append(out, one)
		}
		return out
	})
	gear := map[string]any{"apiVersion": "example.com/v1", "kind": "Gear"}
	maybe(gear, "spec", func() any { return spec })
	maybe(gear, "status", func() any { return map[string]any{"turns": int64(r.IntN(3))} })
	return gear
}

// inRaw returns an object whose spec and status are kept as they were read.
func inRaw(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	out := map[string]any{}
	for name, v := range object {
		out[name] = v
		if name != "spec" && name != "status" {
			continue
		}
		raw, ok := wire.Canonicalize(encoded(t, v))
		if !ok {
			t.Fatalf("cannot canonicalize %v", v)
		}
		out[name] = raw
	}
	return out
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// asGear decodes an object into the Go type.
func asGear(t *testing.T, object map[string]any) *gear {
	t.Helper()
	g := &gear{}
	if err := json.Unmarshal(encoded(t, object), g); err != nil {
		t.Fatal(err)
	}
	return g
}

// asMap is the JSON of the Go type.
func asMap(t *testing.T, g *gear) map[string]any {
	t.Helper()
	raw, ok := wire.Canonicalize(encoded(t, g))
	if !ok {
		t.Fatalf("cannot canonicalize %+v", g)
	}
	return wire.DecodeValue(raw).(map[string]any)
}

// marks are the sets of fields of a comparison, in the notation of managedFields.
type marks struct{ Added, Modified, Removed string }

func (m marks) String() string {
	return fmt.Sprintf("added %s, modified %s, removed %s", m.Added, m.Modified, m.Removed)
}

// marksOf returns the fields of a tree by their marks.
func marksOf(tree *Tree) marks {
	only := func(wanted mark) string {
		some := &Tree{branches: append([]branch(nil), tree.branches...)}
		for i := range some.branches {
			switch some.branches[i].mark {
			case wanted:
				some.branches[i].mark = added
			default:
				some.branches[i].mark = unmarked
			}
		}
		if some.gainsAt(0); some.Empty() {
			return ""
		}
		return some.Text()
	}
	return marks{only(added), only(modified), only(removed)}
}

func (l library) marks(t *testing.T, before, after map[string]any) marks {
	t.Helper()
	c, err := l.typed(t, before).Compare(l.typed(t, after))
	if err != nil {
		t.Fatal(err)
	}
	text := func(set *fieldpath.Set) string {
		if set.Empty() {
			return ""
		}
		return textOf(t, set)
	}
	return marks{text(c.Added), text(c.Modified), text(c.Removed)}
}

func TestCompareFindsTheChangesThatTheLibraryFinds(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	compared := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		before, after := randomGear(r), randomGear(r)
		want := l.marks(t, before, after)
		for name, pair := range map[string][2]map[string]any{
			"decoded": {before, after}, "raw": {inRaw(t, before), inRaw(t, after)}, "raw before": {inRaw(t, before), after},
			"raw after": {before, inRaw(t, after)},
		} {
			tree, ok := Compare(l.own, pair[0], pair[1])
			if !ok {
				continue
			}
			compared++
			if got := marksOf(tree); got != want {
				t.Fatalf("seed %d, %s: %s to %s\n got %s\nwant %s", seed, name, encoded(t, before), encoded(t, after), got, want)
			}
		}
	}
	if compared < 3000 {
		t.Errorf("%d of 4000 pairs were compared", compared)
	}
}

func TestCompareTypedFindsTheChangesOfTheJSON(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	compared := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 4))
		before, after := asGear(t, randomGear(r)), asGear(t, randomGear(r))
		want := l.marks(t, asMap(t, before), asMap(t, after))
		tree, ok := CompareTyped(l.own, reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem())
		if !ok {
			continue
		}
		compared++
		if got := marksOf(tree); got != want {
			t.Fatalf("seed %d: %s to %s\n got %s\nwant %s", seed, encoded(t, before), encoded(t, after), got, want)
		}
	}
	if compared < 900 {
		t.Errorf("%d of 1000 pairs were compared", compared)
	}
}

// TestCompareLeavesToTheLibraryWhatItIsNotCertainOf: a value of another type, a list with
// two elements of one name, a key without a value, a text that is escaped in JSON.
func TestCompareLeavesToTheLibraryWhatItIsNotCertainOf(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for _, text := range []string{
		`{"spec": {"size": "1"}}`, `{"spec": {"open": 1}}`, `{"spec": {"colour": {}}}`, `{"spec": {"colour": []}}`, `{"spec": "a"}`, `{"spec": {"size": 1.5}}`,
		`{"spec": {"tags": ["a", "a"]}}`, `{"spec": {"tags": [1]}}`, `{"spec": {"tags": ["\""]}}`, `{"spec": {"plain": [1]}}`, `{"spec": {"fixed": {"a": 1}}}`,
		`{"spec": {"teeth": [{"name": "a", "angle": 1}, {"name": "a", "angle": 1}]}}`, `{"spec": {"teeth": [{"name": "a"}]}}`,
		`{"spec": {"teeth": ["a"]}}`, `{"spec": {"labels": {"\"": "a"}}}`, `{"spec": {"unknown": 1}}`,
	} {
		raw, ok := wire.Canonicalize([]byte(text))
		if !ok {
			t.Fatalf("cannot canonicalize %s", text)
		}
		object := wire.DecodeValue(raw).(map[string]any)
		for _, one := range []map[string]any{object, inRaw(t, object)} {
			if tree, ok := Compare(l.own, map[string]any{}, one); ok {
				t.Errorf("%s is compared: %s", text, marksOf(tree))
			}
		}
	}
}

func TestMergeIsThatOfTheLibrary(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	merged := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		object, configuration := randomGear(r), randomGear(r)
		before := encoded(t, object)
		want, err := l.typed(t, object).Merge(l.typed(t, configuration))
		if err != nil {
			t.Fatal(err)
		}
		for name, live := range map[string]map[string]any{"decoded": object, "raw": inRaw(t, object)} {
			got, ok := Merge(l.own, live, configuration)
			if !ok {
				continue
			}
			merged++
			for field, v := range got {
				got[field] = wire.DecodeValue(v)
			}
			if diff := cmp.Diff(want.AsValue().Unstructured(), any(got)); diff != "" {
				t.Fatalf("seed %d, %s: %s with %s (-library +ours):\n%s", seed, name, before, encoded(t, configuration), diff)
			}
		}
		if got := encoded(t, object); string(got) != string(before) {
			t.Fatalf("seed %d: the object was changed from %s to %s", seed, before, got)
		}
	}
	if merged < 200 {
		t.Errorf("%d of 2000 configurations were merged", merged)
	}
}

func TestCreationOwnsWhatAComparisonWithNothingAdds(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	resets, ok := ReadText(`{"f:status":{}}`)
	if !ok {
		t.Fatal("the resets are not read")
	}
	c := NewCreation(l.own, reflect.TypeFor[gear](), resets)
	if c == nil {
		t.Fatal("the Go type is not supported")
	}
	owned := 0
	for seed := range uint64(1000) {
		g := asGear(t, randomGear(rand.New(rand.NewPCG(seed, 6))))
		if seed == 0 {
			g = &gear{TypeMeta: g.TypeMeta}
		}
		if fresh := reflect.DeepEqual(*g, gear{TypeMeta: g.TypeMeta}); fresh != c.Fresh(reflect.ValueOf(g).UnsafePointer()) {
			t.Fatalf("seed %d: whether %s is fresh: want %v", seed, encoded(t, g), fresh)
		}
		got, ok := c.Of(reflect.ValueOf(g).UnsafePointer())
		if !ok {
			continue
		}
		owned++
		tree, ok := CompareTyped(l.own, reflect.ValueOf(&gear{TypeMeta: g.TypeMeta}).Elem(), reflect.ValueOf(g).Elem())
		if !ok {
			t.Fatalf("seed %d: no comparison of %s", seed, encoded(t, g))
		}
		tree.Prune(resets)
		if tree.Gains(); tree.Empty() != (got == nil) || got != nil && got.GetRawString() != tree.Text() {
			t.Fatalf("seed %d: %s owns %v, want %s", seed, encoded(t, g), got, tree.Text())
		}
	}
	if owned < 800 {
		t.Errorf("of %d of 1000 creations the fields were found in one pass", owned)
	}
	if NewCreation(l.own, reflect.TypeFor[gearSpec](), None()) != nil || NewCreation(nil, reflect.TypeFor[gear](), None()) != nil {
		t.Error("a type without TypeMeta, or without a schema, is supported")
	}
}

// TestShapesOfPairsDecideWhatChanges: two changes of one shape add, modify and remove the
// same fields, and their shapes differ if they do not.
func TestShapesOfPairsDecideWhatChanges(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	known, first, again := map[string]marks{}, map[string]string{}, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 7))
		before, after := randomGear(r), randomGear(r)
		if seed%2 == 0 { // one field, so that shapes occur again
			before = map[string]any{"spec": map[string]any{"size": int64(r.IntN(3)), "tags": []any{string(rune('a' + r.IntN(3)))}}}
			after = map[string]any{"spec": map[string]any{"size": int64(r.IntN(3)), "teeth": []any{map[string]any{"name": "a", "angle": int64(r.IntN(2))}}}}
		}
		want := l.marks(t, before, after)
		for _, pair := range [][2]map[string]any{{before, after}, {inRaw(t, before), inRaw(t, after)}} {
			s := NewShape()
			if !s.AddPair(l.own, pair[0], pair[1]) {
				continue
			}
			shape := string(s.Bytes())
			text := fmt.Sprintf("%s to %s", encoded(t, before), encoded(t, after))
			if was, ok := known[shape]; ok && was != want {
				t.Fatalf("of one shape are\n%s: %s\n%s: %s", first[shape], was, text, want)
			} else if ok && first[shape] != text {
				again++
			}
			known[shape], first[shape] = want, text
		}
	}
	if again < 200 {
		t.Errorf("%d changes had the shape of another one, want most of the small ones", again)
	}
}

func TestShapesDifferByFlagsTextsAndValues(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	seen := map[string]int{}
	for i, add := range []func(*Shape){
		func(*Shape) {},
		func(s *Shape) { s.AddFlag(true) },
		func(s *Shape) { s.AddFlag(false) },
		func(s *Shape) { s.AddText("a") },
		func(s *Shape) { s.AddText("b") },
		func(s *Shape) { s.AddText("a"); s.AddText("b") },
		func(s *Shape) { s.AddText("ab") },
		func(s *Shape) { s.AddValue(l.own, map[string]any{"kind": "a"}) },
		func(s *Shape) { s.AddValue(l.own, map[string]any{"apiVersion": "a"}) },
		func(s *Shape) { s.AddValue(l.own, map[string]any{"spec": map[string]any{"tags": []any{"a"}}}) },
		func(s *Shape) { s.AddValue(l.own, map[string]any{"spec": map[string]any{"tags": []any{"b"}}}) },
		func(s *Shape) { s.AddValue(l.own, map[string]any{"spec": map[string]any{"tags": []any{}}}) },
	} {
		s := NewShape()
		add(s)
		if other, ok := seen[string(s.Bytes())]; ok {
			t.Errorf("shapes %d and %d are equal", other, i)
		}
		seen[string(s.Bytes())] = i
	}
	if NewShape().AddValue(l.own, map[string]any{"unknown": "a"}) {
		t.Error("a field that the schema does not have has a shape")
	}
}

func TestSetsFitATypeUnlessTheyGoIntoAtomicValues(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for text, want := range map[string]bool{
		`{"f:spec":{"f:colour":{}}}`:                                                     true,
		`{"f:spec":{"f:labels":{".":{},"f:a":{}}}}`:                                      true,
		`{"f:spec":{"f:fixed":{}}}`:                                                      true,
		`{"f:spec":{"f:fixed":{"f:a":{}}}}`:                                              false,
		`{"f:spec":{"f:plain":{}}}`:                                                      true,
		`{"f:spec":{"f:plain":{"v:\"a\"":{}}}}`:                                          false,
		`{"f:spec":{"f:tags":{"v:\"a\"":{}}}}`:                                           true,
		`{"f:spec":{"f:teeth":{"k:{\"angle\":1,\"name\":\"a\"}":{".":{},"f:name":{}}}}}`: true,
	} {
		tree, ok := ReadText(text)
		if !ok {
			t.Errorf("%s is not read", text)
			continue
		}
		if got := tree.Fits(l.own); got != want {
			t.Errorf("%s fits: %v, want %v", text, got, want)
		}
	}
}
