// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/doc"
)

const (
	jsonType      = types.JSONPatchType
	mergeType     = types.MergePatchType
	strategicType = types.StrategicMergePatchType
)

func TestPatchedDocuments(t *testing.T) {
	t.Parallel()
	podSchema := podSchema(t)
	tests := map[string]struct {
		kind             types.PatchType
		doc, patch, want string
	}{
		"json add":                       {jsonType, `{"a":{}}`, `[{"op":"add","path":"/a/b","value":{"c":1}}]`, `{"a":{"b":{"c":1}}}`},
		"json add to list":               {jsonType, `{"a":[1,3]}`, `[{"op":"add","path":"/a/1","value":2},{"op":"add","path":"/a/-","value":4}]`, `{"a":[1,2,3,4]}`},
		"json add before the last":       {jsonType, `{"a":[1,3]}`, `[{"op":"add","path":"/a/-1","value":2}]`, `{"a":[1,3,2]}`},
		"json remove":                    {jsonType, `{"a":[1,2,3],"b":1}`, `[{"op":"remove","path":"/a/0"},{"op":"remove","path":"/b"}]`, `{"a":[2,3]}`},
		"json replace creates":           {jsonType, `{"a":{}}`, `[{"op":"replace","path":"/a/b","value":1}]`, `{"a":{"b":1}}`},
		"json replace in list":           {jsonType, `{"a":[1,2]}`, `[{"op":"replace","path":"/a/1","value":{"x":null}}]`, `{"a":[1,{"x":null}]}`},
		"json replace root":              {jsonType, `{"a":1}`, `[{"op":"replace","path":"","value":{"b":2}}]`, `{"b":2}`},
		"json move":                      {jsonType, `{"a":{"x":1},"b":{}}`, `[{"op":"move","from":"/a/x","path":"/b/y"}]`, `{"a":{},"b":{"y":1}}`},
		"json move in list":              {jsonType, `{"a":[1,2,3]}`, `[{"op":"move","from":"/a/0","path":"/a/2"}]`, `{"a":[2,3,1]}`},
		"json copy is deep":              {jsonType, `{"a":{"x":[1]}}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/x/-","value":2}]`, `{"a":{"x":[1]},"b":{"x":[1,2]}}`},
		"json test":                      {jsonType, `{"a":{"x":[1,"y"]}}`, `[{"op":"test","path":"/a","value":{"x":[1,"y"]}},{"op":"test","path":"/nope","value":null}]`, `{"a":{"x":[1,"y"]}}`},
		"json escapes":                   {jsonType, `{"m":{"a/b":1,"c~d":2,"~1":3}}`, `[{"op":"remove","path":"/m/a~1b"},{"op":"remove","path":"/m/c~0d"},{"op":"remove","path":"/m/~01"}]`, `{"m":{}}`},
		"json nested lists":              {jsonType, `{"a":[[1],[2]]}`, `[{"op":"add","path":"/a/1/0","value":0},{"op":"remove","path":"/a/0/0"}]`, `{"a":[[],[0,2]]}`},
		"json null patch":                {jsonType, `{"a":1}`, `null`, `{"a":1}`},
		"merge":                          {mergeType, `{"a":{"b":1,"c":2},"d":[1]}`, `{"a":{"b":null,"e":{"f":null,"g":1}},"d":[2,null]}`, `{"a":{"c":2,"e":{"g":1}},"d":[2,null]}`},
		"merge replaces a scalar":        {mergeType, `{"a":1}`, `{"a":{"b":{"c":null}}}`, `{"a":{"b":{}}}`},
		"merge keeps large whole number": {mergeType, `{"a":9007199254740993}`, `{"b":9007199254740993}`, `{"a":9007199254740993,"b":9007199254740993}`},
		"strategic merges by key": {strategicType, `{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}}`,
			`{"spec":{"containers":[{"name":"b","image":"2"},{"name":"a","$patch":"delete"}]}}`, `{"spec":{"containers":[{"name":"b","image":"2"}]}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Parse(test.kind, []byte(test.patch), Options{Strict: true, Schema: podSchema})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a conflicting write applies a patch again
				got, err := p.Apply(docOf(t, test.doc))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(object(t, test.want), got.Content()); diff != "" {
					t.Errorf("patched document (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind       types.PatchType
		doc, patch string
		code       int
		message    string
	}{
		"not json":            {jsonType, `{}`, `[{`, 400, "invalid JSON patch"},
		"no list":             {jsonType, `{}`, `{}`, 400, "error decoding patch: json: cannot unmarshal object"},
		"unknown op":          {jsonType, `{}`, `[{"op":"frob","path":"/a"}]`, 422, "Unexpected kind: frob"},
		"no op":               {jsonType, `{}`, `[{"path":"/a"}]`, 422, "Unexpected kind: unknown"},
		"no path":             {jsonType, `{}`, `[{"op":"add"}]`, 422, "add operation failed to decode path: missing value"},
		"missing parent":      {jsonType, `{}`, `[{"op":"add","path":"/a/b","value":1}]`, 422, `add operation does not apply: doc is missing path: "/a/b": missing value`},
		"remove missing":      {jsonType, `{}`, `[{"op":"remove","path":"/a"}]`, 422, "error in remove for path: '/a': Unable to remove nonexistent key: a: missing value"},
		"index out of range":  {jsonType, `{"a":[1]}`, `[{"op":"add","path":"/a/3","value":1}]`, 422, "error in add for path: '/a/3': Unable to access invalid index: 3: invalid index referenced"},
		"replace out of list": {jsonType, `{"a":[1]}`, `[{"op":"replace","path":"/a/1","value":1}]`, 422, "replace operation does not apply: doc is missing key: /a/1: missing value"},
		"no index":            {jsonType, `{"a":[1]}`, `[{"op":"add","path":"/a/x","value":1}]`, 422, "value was not a proper array index: 'x'"},
		"test fails":          {jsonType, `{"a":1}`, `[{"op":"test","path":"/a","value":2}]`, 422, "testing value /a failed: test failed"},
		"root becomes a list": {jsonType, `{"a":1}`, `[{"op":"replace","path":"","value":[]}]`, 422, "must be an object"},
		"too many operations": {jsonType, `{}`, `[` + strings.Repeat(`{"op":"test","path":"/a"},`, 10_000) + `{"op":"test","path":"/a"}]`, 413, "The allowed maximum operations in a JSON patch is 10000, got 10001"},
		"doubling copies":     {jsonType, `{"a":["0123456789"]}`, `[` + strings.Repeat(`{"op":"copy","from":"/a","path":"/a/-"},`, 50) + `{"op":"test","path":"/x"}]`, 422, "Unable to complete the copy"},
		"merge of a list":     {mergeType, `{}`, `[]`, 400, "error decoding patch"},
		"merge of null":       {mergeType, `{}`, `null`, 400, "Invalid JSON Patch"},
		"strategic":           {strategicType, `{}`, `{}`, 415, "accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Parse(test.kind, []byte(test.patch), Options{Strict: true})
			if err == nil {
				_, err = p.Apply(docOf(t, test.doc))
			}
			var status apierrors.APIStatus
			if !errors.As(err, &status) || int(status.Status().Code) != test.code {
				t.Fatalf("error %v, want a status with code %d", err, test.code)
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("message %q, want it to contain %q", err.Error(), test.message)
			}
			const wire = "the server rejected our request due to an error in our request"
			if test.code == 422 && status.Status().Message != wire {
				t.Errorf("message on the wire %q, want %q", status.Status().Message, wire)
			}
		})
	}
}

func TestStrategicDirectivesThatAreMalformed(t *testing.T) {
	t.Parallel()
	p, err := Parse(strategicType, []byte(`{"spec":{"$retainKeys":"x"}}`), Options{Schema: podSchema(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(docOf(t, `{"spec":{"a":1}}`)); !apierrors.IsBadRequest(err) {
		t.Errorf("error %v, want a bad request", err)
	}
}

func TestNestingIsBounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 6_000) + `1` + strings.Repeat(`}`, 6_000)
	p, err := Parse(jsonType, []byte(`[{"op":"copy","from":"/x","path":"`+"/x"+strings.Repeat("/a", 5_000)+`"}]`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(docOf(t, `{"x":`+deep+`}`)); err == nil || !strings.Contains(err.Error(), "nest deeper") {
		t.Errorf("error %v, want one about nesting", err)
	}
}

// The subtree that moves is not measured for each move.
func TestMovesOfALargeSubtreeCostNoMoreThanReadingItOnce(t *testing.T) {
	t.Parallel()
	large := make([]any, 200_000)
	for i := range large {
		large[i] = []any{}
	}
	moves := func(n int) time.Duration {
		body := []string{}
		for i := range n {
			from, to := "/a", "/b/c"
			if i%2 == 1 {
				from, to = to, from
			}
			body = append(body, fmt.Sprintf(`{"op":"move","from":%q,"path":%q}`, from, to))
		}
		p, err := Parse(jsonType, []byte("["+strings.Join(body, ",")+"]"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := p.(*jsonPatch).change(map[string]any{"a": large, "b": map[string]any{}}); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	one, many := min(moves(1), moves(1), moves(1)), moves(4000)
	if many > 100*one {
		t.Errorf("one move took %v, 4000 took %v", one, many)
	}
}

func TestJSONPatchBoundsTheElementsThatItShifts(t *testing.T) {
	t.Parallel()
	const length, operations = 1000, 100
	for operation, shifted := range map[string]int{ // by each operation at most
		`{"op":"add","path":"/list/0","value":1}`:         length + operations,
		`{"op":"add","path":"/list/-","value":1}`:         0,
		`{"op":"remove","path":"/list/0"}`:                length,
		`{"op":"copy","from":"/list/0","path":"/list/0"}`: length + operations,
		`{"op":"move","from":"/list/0","path":"/list/-"}`: length,
	} {
		p, err := Parse(jsonType, []byte("["+strings.Repeat(operation+",", operations-1)+operation+"]"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		apply := func(most int) error {
			p.(*jsonPatch).maxShift = most
			_, err := p.Apply(doc.New(map[string]any{"list": make([]any, length)}))
			return err
		}
		if err := apply(shifted * operations); err != nil {
			t.Errorf("%s within the bound: %v", operation, err)
		}
		if err := apply(shifted * operations / 2); shifted > 0 && (!apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "add to the end")) {
			t.Errorf("%s beyond the bound: %v", operation, err)
		}
	}
}

func TestStrictFindings(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`[{"op":"add","path":"/a","value":1,"extra":true}]`:           `[json patch unknown field "[0].extra"]`,
		`[{"op":"add","op":"add","path":"/a","value":{"x":1,"x":2}}]`: `[json patch duplicate field "[0].op" json patch duplicate field "[0].value.x"]`,
	} {
		p, err := Parse(jsonType, []byte(body), Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.Strict()); got != want {
			t.Errorf("findings %s, want %s", got, want)
		}
	}
	p, err := Parse(mergeType, []byte(`{"a":1,"a":2}`), Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(p.Strict()), `[duplicate field "a"]`; got != want {
		t.Errorf("findings %s, want %s", got, want)
	}
}

func podSchema(t testing.TB) strategicpatch.LookupPatchMeta {
	t.Helper()
	schema, err := strategicpatch.NewPatchMetaFromStruct(&corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func object(t testing.TB, doc string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(doc), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func docOf(t testing.TB, text string) *doc.Doc {
	t.Helper()
	return doc.New(object(t, text))
}

func encode(t testing.TB, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
