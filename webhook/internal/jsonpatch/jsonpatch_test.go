// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4"
)

func parse(t *testing.T, document string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(document), &out); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return out
}

// apply applies a patch with the library that kube-apiserver uses.
func apply(t *testing.T, document any, ops []Operation) any {
	t.Helper()
	patch, err := evanphx.DecodePatch([]byte(text(ops)))
	if err != nil {
		t.Fatalf("%s: %v", text(ops), err)
	}
	out, err := patch.Apply([]byte(text(document)))
	if err != nil {
		t.Fatalf("apply %s to %s: %v", text(ops), text(document), err)
	}
	return parse(t, string(out))
}

func TestDiffNamesTheLeastOperations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{`{}`, `{}`, `null`},
		{`{"a":1}`, `{"a":1,"b":{"c":0}}`, `[{"op":"add","path":"/b","value":{"c":0}}]`},
		{`{"a":1,"b":2}`, `{"b":0}`, `[{"op":"remove","path":"/a"},{"op":"replace","path":"/b","value":0}]`},
		{`{"a":{"x/y~z":1}}`, `{"a":{"x/y~z":""}}`, `[{"op":"replace","path":"/a/x~1y~0z","value":""}]`},
		{`{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{`[1,2,3]`, `[1,3]`, `[{"op":"remove","path":"/1"}]`},
		{`[1,3]`, `[1,2,3]`, `[{"op":"add","path":"/1","value":2}]`},
		{`[{"n":1},{"n":2}]`, `[{"n":1},{"n":3}]`, `[{"op":"replace","path":"/1/n","value":3}]`},
		{`{"a":[]}`, `{"a":{}}`, `[{"op":"replace","path":"/a","value":{}}]`},
		{`{}`, `{"a":false}`, `[{"op":"add","path":"/a","value":false}]`},
	} {
		ops := Diff(parse(t, c.from), parse(t, c.to))
		if got := text(ops); got != c.want {
			t.Errorf("from %s to %s: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

func TestRebaseKeepsWhatTheTypeDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, received, before, after, want string }{
		{"unchanged", `{"a":0,"new":1}`, `{}`, `{}`, `{"a":0,"new":1}`},
		{"a zero that the type leaves out is set", `{"a":0,"new":1}`, `{}`, `{"a":1}`, `{"a":1,"new":1}`},
		{"what the type adds of itself is not written", `{"new":1}`, `{"status":{}}`, `{"status":{},"a":1}`, `{"new":1,"a":1}`},
		{"a field in what the type adds of itself", `{}`, `{"status":{}}`, `{"status":{"n":1}}`, `{"status":{"n":1}}`},
		{"removed", `{"a":{"known":1,"new":1}}`, `{"a":{"known":1}}`, `{}`, `{}`},
		{"removed below", `{"a":{"known":1,"new":1}}`, `{"a":{"known":1}}`, `{"a":{}}`, `{"a":{"new":1}}`},
		{"null becomes an object", `{"a":null}`, `{}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"an item changed in place", `{"l":[{"x":1,"new":1}]}`, `{"l":[{"x":1}]}`, `{"l":[{"x":2}]}`, `{"l":[{"x":2,"new":1}]}`},
		{"an item before the others", `{"l":[{"name":"a","new":1}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"z"},{"name":"a"}]}`, `{"l":[{"name":"z"},{"name":"a","new":1}]}`},
		{"a named item moved and changed", `{"l":[{"name":"a","new":1},{"name":"b"}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"b"},{"name":"c"},{"name":"a","x":1}]}`, `{"l":[{"name":"b"},{"name":"c"},{"name":"a","x":1,"new":1}]}`},
		{"an item gone", `{"l":[{"x":1,"new":1},{"x":2,"new":2}]}`, `{"l":[{"x":1},{"x":2}]}`, `{"l":[{"x":2}]}`, `{"l":[{"x":2,"new":2}]}`},
		{"equal items", `{"l":[{"x":1,"new":1},{"x":1,"new":2}]}`, `{"l":[{"x":1},{"x":1}]}`, `{"l":[{"x":1},{"x":1},{"x":3}]}`, `{"l":[{"x":1,"new":1},{"x":1,"new":2},{"x":3}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Rebase(parse(t, c.received), parse(t, c.before), parse(t, c.after))
			if want := parse(t, c.want); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, want %s", text(got), c.want)
			}
		})
	}
}

// TestDiffOfRandomValuesIsAppliedByKubeAPIServersLibrary proves: the patch of any two
// values turns the one into the other.
func TestDiffOfRandomValuesIsAppliedByKubeAPIServersLibrary(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		from := map[string]any{"o": generate(random, 4)} // the root of an object is never replaced
		to := map[string]any{"o": change(random, from["o"])}
		if got := apply(t, from, Diff(from, to)); !reflect.DeepEqual(got, to) {
			t.Fatalf("from %s to %s: %s makes %s", text(from), text(to), text(Diff(from, to)), text(got))
		}
	}
}

// TestRebaseOfRandomValuesGivesTheWantedValue proves: where the type knows everything,
// the result is what it was changed to.
func TestRebaseOfRandomValuesGivesTheWantedValue(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		before := generate(random, 4)
		after := change(random, before)
		if got := Rebase(before, before, after); !reflect.DeepEqual(got, after) {
			t.Fatalf("from %s to %s: %s", text(before), text(after), text(got))
		}
	}
}

func generate(random *rand.Rand, depth int) any {
	switch n := random.IntN(8); {
	case depth > 0 && n < 3:
		out := map[string]any{}
		for range random.IntN(4) {
			out[[]string{"name", "a", "b/c", "d~e"}[random.IntN(4)]] = generate(random, depth-1)
		}
		return out
	case depth > 0 && n < 5:
		out := []any{}
		for range random.IntN(4) {
			out = append(out, generate(random, depth-1))
		}
		return out
	default:
		return []any{nil, "", "x", 0.0, 1.5, true, false, fmt.Sprint(random.IntN(3))}[random.IntN(8)]
	}
}

// change returns a changed copy.
func change(random *rand.Rand, value any) any {
	if random.IntN(12) == 0 {
		return generate(random, 2)
	}
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, v := range value {
			if random.IntN(6) > 0 {
				out[name] = change(random, v)
			}
		}
		if random.IntN(4) == 0 {
			out["f"] = generate(random, 2)
		}
		return out
	case []any:
		out := []any{}
		for _, v := range value {
			if random.IntN(6) == 0 {
				out = append(out, generate(random, 2))
			}
			if random.IntN(6) > 0 {
				out = append(out, change(random, v))
			}
		}
		return out
	}
	return value
}
