// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/steer-dev/steer/internal/jsontext"
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
    - {name: holes, type: {list: {elementType: {namedType: hole}, elementRelationship: associative, keys: [name, side]}}}
    - {name: teeth, type: {list: {elementType: {namedType: tooth}, elementRelationship: associative, keys: [name, angle]}}}
- name: tooth
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: angle, type: {scalar: numeric}}
    - {name: note, type: {scalar: string}}
- name: hole
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: side, type: {scalar: string}, default: left}
- name: status
  map:
    fields:
    - {name: turns, type: {scalar: numeric}}
`

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
	if r.IntN(6) == 0 {
		maybe(spec, "holes", func() any {
			out := []any{}
			for _, i := range r.Perm(3)[:r.IntN(3)] {
				one := map[string]any{"name": string(rune('a' + i))}
				maybe(one, "side", func() any { return []string{"left", "right"}[r.IntN(2)] })
				out = append(out, one)
			}
			return out
		})
	}
	gear := map[string]any{"apiVersion": "example.com/v1", "kind": "Gear"}
	maybe(gear, "spec", func() any { return spec })
	maybe(gear, "status", func() any { return map[string]any{"turns": int64(r.IntN(3))} })
	return gear
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
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
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 3))
		before, after := randomGear(r), randomGear(r)
		tree, ok := Compare(l.own, asTexts(t, before), asTexts(t, after))
		if !ok {
			continue
		}
		compared++
		if got, want := marksOf(tree), l.marks(t, before, after); got != want {
			t.Fatalf("seed %d: %s to %s\n got %s\nwant %s", seed, encoded(t, before), encoded(t, after), got, want)
		}
	}
	if compared < 3000 {
		t.Errorf("%d of 4000 pairs were compared", compared)
	}
}

// uncertain are objects with a value of another type, a list with two elements of one name, a key
// without a value, a text that is escaped in JSON.
func uncertain() []string {
	return []string{
		`{"spec": {"size": "1"}}`, `{"spec": {"open": 1}}`, `{"spec": {"colour": {}}}`, `{"spec": {"colour": []}}`, `{"spec": "a"}`, `{"spec": {"size": 1.5}}`,
		`{"spec": {"tags": ["a", "a"]}}`, `{"spec": {"tags": [1]}}`, `{"spec": {"tags": ["\""]}}`, `{"spec": {"plain": [1]}}`, `{"spec": {"fixed": {"a": 1}}}`,
		`{"spec": {"teeth": [{"name": "a", "angle": 1}, {"name": "a", "angle": 1}]}}`, `{"spec": {"teeth": [{"name": "a"}]}}`,
		`{"spec": {"teeth": ["a"]}}`, `{"spec": {"labels": {"\"": "a"}}}`, `{"spec": {"unknown": 1}}`,
	}
}

func TestCompareLeavesToTheLibraryWhatItIsNotCertainOf(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for _, text := range uncertain() {
		if tree, ok := Compare(l.own, nil, inText(t, text)); ok {
			t.Errorf("%s is compared: %s", text, marksOf(tree))
		}
	}
}

// TestConfigurationsAreMergedAsByTheLibrary compares the fields that random configurations set,
// and the objects that they are merged into.
func TestConfigurationsAreMergedAsByTheLibrary(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		object, configuration := randomGear(r), randomGear(r)
		set, ok := SetOf(l.own, asTexts(t, configuration))
		if !ok {
			t.Fatalf("seed %d: no set of %s", seed, encoded(t, configuration))
		}
		wanted, err := l.typed(t, configuration).ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := set.Text(), textOf(t, wanted); got != want {
			t.Fatalf("seed %d: set of %s\n got %s\nwant %s", seed, encoded(t, configuration), got, want)
		}
		if !set.Contains(set) {
			t.Fatalf("seed %d: %s does not contain itself", seed, set.Text())
		}
		want, err := l.typed(t, object).Merge(l.typed(t, configuration))
		if err != nil {
			t.Fatal(err)
		}
		got, ok := Merge(l.own, asTexts(t, object), asTexts(t, configuration))
		if !ok {
			t.Fatalf("seed %d: %s is not merged with %s", seed, encoded(t, object), encoded(t, configuration))
		}
		merged := map[string]any{}
		for _, m := range got {
			merged[m.Name] = m.Value.Decode()
		}
		if diff := cmp.Diff(want.AsValue().Unstructured(), any(merged)); diff != "" {
			t.Fatalf("seed %d: %s with %s (-library +ours):\n%s", seed, encoded(t, object), encoded(t, configuration), diff)
		}
	}
}

// TestConfigurationsThatAreNotCertainAreLeftToTheLibrary: those of [Compare], and a null among
// elements; so are objects of another type.
func TestConfigurationsThatAreNotCertainAreLeftToTheLibrary(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for _, text := range append(uncertain(), `{"spec": {"tags": [null]}}`, `{"spec": {"plain": [null]}}`, `{"spec": {"teeth": [null]}}`) {
		if set, ok := SetOf(l.own, inText(t, text)); ok {
			t.Errorf("%s sets %s", text, set.Text())
		}
	}
	configuration := asTexts(t, map[string]any{"spec": map[string]any{"size": int64(1), "tags": []any{"a"}, "fixed": map[string]any{"a": "b"}}})
	for _, text := range []string{
		`{"size": "1"}`, `{"size": {}}`, `{"tags": ["b", "b"]}`, `{"tags": [{}]}`, `{"tags": "b"}`, `{"fixed": {"a": 1}}`, `{"fixed": []}`, `{"unknown": 1}`,
	} {
		if got, ok := Merge(l.own, Object{{"spec", jsontext.Text(strings.ReplaceAll(text, " ", ""))}}, configuration); ok {
			t.Errorf("%s is merged: %v", text, got)
		}
	}
}

// asTexts is an object as text.
func asTexts(t *testing.T, object map[string]any) Object {
	t.Helper()
	return inText(t, string(encoded(t, object)))
}

func inText(t *testing.T, object string) Object {
	t.Helper()
	text, ok := jsontext.Canonicalize([]byte(object))
	if !ok {
		t.Fatalf("cannot canonicalize %s", object)
	}
	return Split(text)
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
