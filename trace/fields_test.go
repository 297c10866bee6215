// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFieldsOfAMergePatch(t *testing.T) {
	t.Parallel()
	for patch, want := range map[string]string{
		`{"spec":{"replicas":3}}`: "spec.replicas",
		`{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"ready":1,"conditions":[{"type":"Ready"}]}}`:    "status.ready,status.conditions",
		`{"metadata":{"labels":{"app":"x","example.com/a":null},"annotations":{"b":"c"}}}`:                       "metadata.labels[app],metadata.labels[example.com/a],metadata.annotations[b]",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n","namespace":"d"},"data":{"a.txt":"}{\""}}`: "data[a.txt]",
		" { \"spec\" : { \"paused\" : null , \"template\" : { } } } ":                                            "spec.paused,spec.template",
		`{"spec":{"x,y":{"z":1}}}`:                          "spec",
		`{"spec":{"a\u0062":[1,[2],{"x":"]"}],"c":-1.5e3}}`: "spec.ab,spec.c",
		``: "", `[]`: "", `{`: "", `{"a"`: "", `{"a":`: "", `{"a":"b`: "", `{}`: "", `nonsense`: "", `{"a":}}`: "", `{"a":1]`: "a",
	} {
		if got := MergeFields([]byte(patch)); got != want {
			t.Errorf("%s sets %q, not %q", patch, got, want)
		}
	}
}

func TestFieldsOfAJSONPatch(t *testing.T) {
	t.Parallel()
	patch := `[{"op":"test","path":"/spec/a","value":1},{"op":"replace","path":"/spec/a","value":2},{"op":"add","path":"/metadata/labels/example.com~1b","value":"c"},
		{"op":"move","from":"/spec/x","path":"/spec/y/0"},{"op":"replace","path":"/metadata/resourceVersion","value":"1"},{"op":"remove","path":""}]`
	if got, want := PatchFields([]byte(patch)), "spec.a,metadata.labels[example.com/b],spec.x,spec.y[0]"; got != want {
		t.Errorf("got %q, not %q", got, want)
	}
	if got := PatchFields([]byte(`{"op":1}`)); got != "" {
		t.Errorf("what is no patch has the fields %q", got)
	}
}

func TestFieldsAreBounded(t *testing.T) {
	t.Parallel()
	var many, long strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `"f%d":1,`, i)
		fmt.Fprintf(&long, `"%s%d":1,`, strings.Repeat("x", 200), i)
	}
	for _, patch := range []string{"{" + many.String() + `"z":1}`, "{" + long.String() + `"z":1}`, strings.Repeat(`{"a":`, 100000)} {
		got := MergeFields([]byte(patch))
		if n := strings.Count(got, ",") + 1; n > MaxWritten+1 || len(got) > maxText || got != "" && !strings.HasSuffix(got, ",...") {
			t.Errorf("%d paths in %d bytes: %s", n, len(got), got)
		}
	}
}

func TestOnlyFieldsThatWereSentAreAmongThose(t *testing.T) {
	t.Parallel()
	patch := []byte(`{"spec":{"replicas":2,"containers":[{"name":"a"}]},"metadata":{"labels":{"a":"b"}}}`)
	changed := "metadata.labels[a],metadata.labels[ab],spec.replicas,spec.containers[0].image,spec.replica,status.ready"
	if got, want := Among(changed, patch), "metadata.labels[a],spec.replicas,spec.containers[0].image"; got != want {
		t.Errorf("got %q, not %q", got, want)
	}
	if got := Among("metadata,...", patch); got != "metadata,..." {
		t.Errorf("got %q", got)
	}
}

func TestTheDifferNamesFieldsAsPatchesDo(t *testing.T) {
	t.Parallel()
	object := func(labels, spec map[string]any) any {
		return contents{"metadata": map[string]any{"labels": labels}, "spec": spec}
	}
	before := object(map[string]any{"app": "a"}, map[string]any{"a": int64(1), "b.c": "x"})
	after := object(map[string]any{"app": "b"}, map[string]any{"a": int64(2), "b.c": "y"})
	differ := Differ{Most: MaxWritten}
	if got, want := differ.Changed(before, after), "metadata.labels[app],spec.a,spec[b.c]"; got != want {
		t.Errorf("got %q, not %q", got, want)
	}
}

// contents are those of an unstructured object.
type contents map[string]any

func (c contents) UnstructuredContent() map[string]any { return c }

// TestAWalkLeavesNothingToTheNext of a text that is malformed, or whose fields are too many.
func TestAWalkLeavesNothingToTheNext(t *testing.T) {
	t.Parallel()
	for range 3 {
		for _, before := range []string{`{"a":{"b":`, `{"a":}`, "", strings.Repeat(`{"a":`, 100), `{"` + strings.Repeat("k", 1000) + `":{"x":1}}`} {
			MergeFields([]byte(before))
			if got := MergeFields([]byte(`{"spec":{"size":1},"status":{"ready":2}}`)); got != "spec.size,status.ready" {
				t.Errorf("after %.20q: %s", before, got)
			}
		}
	}
}

func FuzzMergeFields(f *testing.F) {
	f.Add([]byte(`{"spec":{"a":[1,{"b":"}"}],"c\u0064":null},"metadata":{"labels":{"x/y":"z"}}}`))
	f.Add([]byte(`{"a":{"a":{"a":`))
	f.Fuzz(func(t *testing.T, patch []byte) {
		got := MergeFields(patch)
		if len(got) > maxText {
			t.Errorf("%d bytes", len(got))
		}
		if again := Among(got, patch); utf8.ValidString(got) && !strings.ContainsAny(got, ",") && again != got {
			t.Errorf("of %q, %q is among the fields", got, again)
		}
	})
}

func BenchmarkMergeFields(b *testing.B) {
	patch := []byte(`{"metadata":{"resourceVersion":"1234"},"status":{"ready":3,"observedGeneration":2,"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"all 3 pods are ready","lastTransitionTime":"2026-01-01T00:00:00Z","observedGeneration":2}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		MergeFields(patch)
	}
}
