// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"math/rand/v2"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/steer-dev/steer/internal/jsontext"
)

// randomSet returns a set like those in managedFields: fields, elements of lists by
// keys, and elements by value.
func randomSet(r *rand.Rand) *fieldpath.Set {
	out := fieldpath.NewSet()
	for range 1 + r.IntN(12) {
		path := fieldpath.Path{}
		for range 1 + r.IntN(4) {
			name := string(rune('a' + r.IntN(4)))
			element := fieldpath.PathElement{FieldName: &name}
			switch r.IntN(5) {
			case 0:
				element = fieldpath.PathElement{Key: fieldpath.KeyByFields("name", name, "port", int64(r.IntN(12)))}
			case 1:
				itself := value.NewValueInterface(name)
				element = fieldpath.PathElement{Value: &itself}
			}
			path = append(path, element)
		}
		out.Insert(path)
	}
	return out
}

func textOf(t *testing.T, set *fieldpath.Set) string {
	t.Helper()
	data, err := set.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// forms parses a set from a text and from a raw value.
func forms(t *testing.T, text string) []*Tree {
	t.Helper()
	fromText, ok := ReadText(text)
	if !ok {
		t.Fatalf("cannot read %s", text)
	}
	raw, ok := jsontext.Canonicalize([]byte(text))
	if !ok {
		t.Fatalf("cannot canonicalize %s", text)
	}
	fromRaw, ok := ReadRaw(raw)
	if !ok {
		t.Fatalf("cannot read %s", raw)
	}
	return []*Tree{fromText, fromRaw}
}

func TestSetsAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		a, b := randomSet(r), randomSet(r)
		textA, textB := textOf(t, a), textOf(t, b)
		for i := range 2 {
			if got := forms(t, textA)[i].Text(); got != textA {
				t.Fatalf("seed %d: read and written\n got %s\nwant %s", seed, got, textA)
			}
			union := forms(t, textA)[i]
			if !union.Union(forms(t, textB)[i]) {
				t.Fatalf("seed %d: no union of %s and %s", seed, textA, textB)
			}
			if got, want := union.Text(), textOf(t, a.Union(b)); got != want {
				t.Fatalf("seed %d: union\n got %s\nwant %s", seed, got, want)
			}
			rest := forms(t, textA)[i]
			changed, ok := rest.Subtract(forms(t, textB)[i])
			want := a.Difference(b)
			if !ok || changed == want.Equals(a) || rest.Empty() != want.Empty() {
				t.Fatalf("seed %d: %s without %s: changed %v, ok %v, empty %v", seed, textA, textB, changed, ok, rest.Empty())
			}
			if got := rest.Text(); !rest.Empty() && got != textOf(t, want) {
				t.Fatalf("seed %d: difference\n got %s\nwant %s", seed, got, textOf(t, want))
			}
		}
	}
}

// TestTextsThatTheLibraryDoesNotWriteAreRefused: a set with another spelling than that
// of the library is left to the library.
func TestTextsThatTheLibraryDoesNotWriteAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `{}`, `{"f:a":{}`, `{"f:a":{}}}`, `{ "f:a":{}}`, `{"f:b":{},"f:a":{}}`, `{"f:a":{},"f:a":{}}`, `{"g:a":{}}`, `{"f:a":1}`,
		`{"i:0":{}}`, `{"f:\u0061":{}}`, `{"f:a":{"k:{\"b\":1,\"a\":1}":{}}}`, `{"f:a":{"v:1.50":{}}}`, `{"f:a":{"v:01":{}}}`, `{"f:ä":{}}`,
		`{".":{},"f:a":{}}`, `{"f:a":{}},`,
	} {
		if _, ok := ReadText(text); ok {
			t.Errorf("%s is read", text)
		}
	}
}
