// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/doc"
)

// FuzzMergeAgreesWithTheLibrary compares with the library that kube-apiserver uses.
func FuzzMergeAgreesWithTheLibrary(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a":{"b":null,"c":[{"d":null}]}}`))
	f.Add([]byte(`{"a":[1],"b":null}`), []byte(`{"a":{"x":{"y":null}},"b":[null,{"z":null}]}`))
	f.Add([]byte(`{"a":{"b":{}}}`), []byte(`{"a":[{"x":null}]}`))
	f.Add([]byte(`{"a":{"b":{"c":1,"d":null},"e":[{"x":null}],"f":{"g":null}}}`), []byte(`{"a":{"b":{"a":{"n":null},"d":[{"y":null}],"z":1.5},"f":[{"y":null}],"e":{"y":null},"h":null}}`))
	f.Add([]byte(`{"a":{},"b":{"c":1}}`), []byte(`{"a":{"x":1,"é":2},"b":{"c":null,"d":"<"},"e":{"f":{"g":null}}}`))
	f.Add([]byte(`{}`), []byte(`{"a":0.0,"b":1e3,"c":1.50}`))
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"a":"b"},"managedFields":[{"manager":"m"}]}}`), []byte(`{"metadata":{"labels":{"a":null,"c":"d"},"managedFields":null}}`))
	f.Add([]byte(`{"metadata":{"managedFields":[]}}`), []byte(`{"metadata":{"managedFields":[{"manager":null}]}}`))
	f.Add([]byte(`{"metadata":{"managedFields":{"a":1}}}`), []byte(`{"metadata":{"managedFields":{"b":{"c":null}}}}`))
	f.Add([]byte(`{"metadata":{"managedFields":[]}}`), []byte(`{"metadata":"text"}`))
	f.Add([]byte(`{"metadata":[]}`), []byte(`{"metadata":{"managedFields":[{"x":null}],"name":null}}`))
	f.Add([]byte(`{"metadata":{}}`), []byte(`{"metadata":null}`))
	f.Fuzz(func(t *testing.T, text, body []byte) {
		var current map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(text, &current) != nil || current == nil {
			return
		}
		p, err := Parse(mergeType, body, Options{})
		if err != nil {
			return
		}
		canonical := []byte(encode(t, current))
		before := doc.New(current)
		patched, err := p.Apply(before)
		if err != nil {
			t.Fatal(err)
		}
		if !before.Equal(doc.New(current)) {
			t.Errorf("doc %s patch %s changed what it was applied to", text, body)
		}
		if again := doc.New(patched.Content()); !again.Equal(patched) { // a result is canonical
			t.Errorf("doc %s patch %s: %s, not %s", text, body, encode(t, patched), encode(t, again))
		}
		if diff := cmp.Diff(merge(current, p.(*mergePatch).body), patched.Content()); diff != "" {
			t.Errorf("doc %s patch %s (-decoded +text):\n%s", text, body, diff)
		}
		var sent map[string]any // with duplicate members the library's result depends on this one
		if found, err := kjson.UnmarshalStrict(body, &sent); err != nil || len(found) > 0 {
			return
		}
		want, err := jsonpatch.MergePatch(canonical, body)
		if err != nil {
			return
		}
		stored := encode(t, object(t, string(want))) // numbers are encoded anew: 0.0 is 0
		if diff := cmp.Diff(object(t, stored), object(t, encode(t, patched))); diff != "" {
			t.Errorf("doc %s patch %s (-library +ours):\n%s", text, body, diff)
		}
	})
}

// FuzzJSONAgreesWithTheLibrary compares errors and results. Values that are equal after
// decoding but not byte by byte are the one difference allowed, so that test operations
// are left out.
func FuzzJSONAgreesWithTheLibrary(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":2}],"c":{}}`), []byte(`[{"op":"move","from":"/a/1/b","path":"/c/d"},{"op":"add","path":"/a/-1","value":[]},{"op":"copy","from":"/a","path":"/a/0"}]`))
	f.Add([]byte(`{"a":[[1],[2]]}`), []byte(`[{"op":"remove","path":"/a/-1"},{"op":"replace","path":"/a/0/0","value":null}]`))
	f.Add([]byte(`{"":{"":1}}`), []byte(`[{"op":"add","path":"x//","value":{"~1":1}},{"op":"remove","path":"/~1"}]`))
	f.Fuzz(func(t *testing.T, text, body []byte) {
		var current map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(text, &current) != nil || current == nil {
			return
		}
		parsed, err := Parse(jsonType, body, Options{Strict: true})
		if err != nil {
			return
		}
		p := parsed.(*jsonPatch)
		for _, op := range p.operations {
			if op.Op == "" || op.Op == "test" || op.Op == "replace" && (op.Path == nil || *op.Path == "") {
				return // their encodings differ, or the library panics
			}
		}
		canonical := []byte(encode(t, current))
		patched, err := p.Apply(doc.New(current))
		if len(p.findings) > 0 {
			return
		}
		library, libraryErr := jsonpatch.DecodePatch([]byte(encode(t, p.operations)))
		if libraryErr != nil {
			return
		}
		want, libraryErr := library.Apply(canonical)
		if (err == nil) != (libraryErr == nil) {
			t.Fatalf("doc %s patch %s: ours %v, library %v", text, body, err, libraryErr)
		}
		if err != nil {
			if err.Error() != libraryErr.Error() {
				t.Errorf("doc %s patch %s:\nours    %v\nlibrary %v", text, body, err, libraryErr)
			}
			return
		}
		if diff := cmp.Diff(object(t, string(want)), object(t, encode(t, patched))); diff != "" {
			t.Errorf("doc %s patch %s (-library +ours):\n%s", text, body, diff)
		}
	})
}

// FuzzStrategicAgreesWithTheLibrary compares with the library that works on whole objects.
func FuzzStrategicAgreesWithTheLibrary(f *testing.F) {
	schema := podSchema(f)
	f.Add([]byte(`{"spec":{"containers":[{"name":"a"}]}}`), []byte(`{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a","$patch":"replace"}]}}`))
	f.Add([]byte(`{"metadata":{"finalizers":["a"]}}`), []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"finalizers":[null]}}`))
	f.Add([]byte(`{"metadata":{"labels":{"a":"b"},"managedFields":[{"manager":"m"}]},"spec":{"a":1}}`), []byte(`{"metadata":{"labels":{"$patch":"replace","c":"d"}},"spec":null}`))
	f.Add([]byte(`{"metadata":{"managedFields":[{"manager":"m"}]},"spec":{}}`), []byte(`{"metadata":{"$patch":"delete"},"$retainKeys":["spec"],"spec":{}}`))
	f.Add([]byte(`{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`), []byte(`{"spec":{"volumes":[{"$retainKeys":["name"],"name":"v"}]}}`))
	f.Fuzz(func(t *testing.T, text, body []byte) {
		var current map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(text, &current) != nil || current == nil {
			return
		}
		p, err := Parse(strategicType, body, Options{Strict: true, Schema: schema})
		if err != nil {
			return
		}
		patched, err := p.Apply(doc.New(current))
		want, wantErr := p.(*strategicPatch).change(current)
		if err != nil || wantErr != nil { // whether a null in a list is one depends on the order of a map
			return
		}
		if diff := cmp.Diff(want, patched.Content()); diff != "" {
			t.Errorf("doc %s patch %s (-library +ours):\n%s", text, body, diff)
		}
	})
}
