// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

const sample = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"annotations":{"a":"x } \" ]"},"labels":{"app":"web","tier\u002d2":"b\"ack"},"name":"one","namespace":"ns","resourceVersion":"0","uid":"u1"},"spec":{"list":[1,{"x":"]"}],"n":3,"on":true,"s":"text"}}`

func TestFindsNestedValues(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"spec.n": "3", "spec.on": "true", "spec.s": "text", "spec.list": "", "spec.none": "", "kind": "Thing", "metadata.name": "one",
		"kind.x": "",
	} {
		if got := wire.Scalar([]byte(sample), strings.Split(path, ".")...); got != want {
			t.Errorf("Scalar(%s) = %q, want %q", path, got, want)
		}
	}
}

func TestReadsMeta(t *testing.T) {
	t.Parallel()
	want := wire.Meta{Namespace: "ns", Name: "one", UID: "u1", Labels: wire.Labels{{"app", "web"}, {"tier-2", `b"ack`}}}
	if diff := cmp.Diff(want, wire.ReadMeta([]byte(sample))); diff != "" {
		t.Error(diff)
	}
}

func TestStampsRevisions(t *testing.T) {
	t.Parallel()
	opened, stamp, err := wire.Open([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	first := wire.Restamp(opened, stamp, 41)
	second := wire.Restamp(first, stamp, 1234)
	for value, want := range map[string]string{string(first): "41", string(second): "1234"} {
		if got := wire.String([]byte(value), "metadata", "resourceVersion"); got != want {
			t.Errorf("revision %q, want %q", got, want)
		}
		if !json.Valid([]byte(value)) {
			t.Errorf("not JSON: %s", value)
		}
	}
	if _, _, err := wire.Open([]byte(`{"metadata":{"name":"x"}}`)); err == nil {
		t.Error("opened an object without a revision")
	}
}

func TestDropsLeadingTypes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"kind":"A","apiVersion":"v1","metadata":{}}`: `{"metadata":{}}`,
		`{"metadata":{},"kind":"A"}`:                   `{"metadata":{},"kind":"A"}`,
		`{"kind":"A","apiVersion":"v1"}`:               `{"kind":"A","apiVersion":"v1"}`,
	} {
		open, rest := wire.Untyped([]byte(in))
		if got := string(open) + string(rest); got != want {
			t.Errorf("Untyped(%s) = %s, want %s", in, got, want)
		}
	}
}

// FuzzScan holds that no input makes the scanner panic, and that on valid JSON
// it agrees with the decoder about a top-level string.
func FuzzScan(f *testing.F) {
	f.Add([]byte(sample), "kind")
	f.Add([]byte(`{"a":[{"b":"c`), "a")
	f.Fuzz(func(t *testing.T, value []byte, key string) {
		got := wire.String(value, key)
		wire.ReadMeta(value)
		wire.Untyped(value)
		_, _, _ = wire.Open(append([]byte(nil), value...))
		var decoded map[string]json.RawMessage
		if json.Unmarshal(value, &decoded) != nil || strings.Count(string(value), key) != 1 {
			return
		}
		var want string
		if json.Unmarshal(decoded[key], &want) == nil && strings.ToValidUTF8(want, "") == want && got != want && !strings.ContainsRune(want, '\ufffd') {
			t.Errorf("String(%q, %q) = %q, want %q", value, key, got, want)
		}
	})
}

// FuzzMarshal holds that the encoder gives the bytes of encoding/json.
func FuzzMarshal(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"a":[1.5,-0,1e30,null,true,"<é\u2028>"],"":{},"b":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var value map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(text, &value) != nil {
			return
		}
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Marshal(value)
		if err != nil || string(got) != string(want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	})
}
