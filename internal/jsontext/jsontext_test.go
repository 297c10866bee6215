// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/internal/jsontext"
)

const sample = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"annotations":{"a":"x } \" ]"},"labels":{"app":"web","tier\u002d2":"b\"ack"},"name":"one","namespace":"ns","resourceVersion":"0","uid":"u1"},"spec":{"list":[1,{"x":"]"}],"n":3,"on":true,"s":"text"}}`

func TestFindsNestedValues(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"spec.n": "3", "spec.on": "true", "spec.s": "text", "spec.list": "", "spec.none": "", "kind": "Thing", "metadata.name": "one",
		"kind.x": "",
	} {
		if got := jsontext.Scalar([]byte(sample), strings.Split(path, ".")...); got != want {
			t.Errorf("Scalar(%s) = %q, want %q", path, got, want)
		}
	}
}

func TestReadsMeta(t *testing.T) {
	t.Parallel()
	want := jsontext.Meta{Namespace: "ns", Name: "one", UID: "u1", Labels: jsontext.Labels{{"app", "web"}, {"tier-2", `b"ack`}}}
	if diff := cmp.Diff(want, jsontext.ReadMeta([]byte(sample))); diff != "" {
		t.Error(diff)
	}
}

func TestStampsRevisions(t *testing.T) {
	t.Parallel()
	opened, stamp, err := jsontext.Open([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	first := jsontext.Restamp(opened, stamp, 41)
	second := jsontext.Restamp(first, stamp, 1234)
	for value, want := range map[string]string{string(first): "41", string(second): "1234"} {
		if got := jsontext.String([]byte(value), "metadata", "resourceVersion"); got != want {
			t.Errorf("revision %q, want %q", got, want)
		}
		if !json.Valid([]byte(value)) {
			t.Errorf("not JSON: %s", value)
		}
	}
	if _, _, err := jsontext.Open([]byte(`{"metadata":{"name":"x"}}`)); err == nil {
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
		open, rest := jsontext.Untyped([]byte(in))
		if got := string(open) + string(rest); got != want {
			t.Errorf("Untyped(%s) = %s, want %s", in, got, want)
		}
	}
}

// FuzzScan: no input makes the scanner panic, and on valid JSON it agrees with the
// decoder about a top-level string.
func FuzzScan(f *testing.F) {
	f.Add([]byte(sample), "kind")
	f.Add([]byte(`{"a":[{"b":"c`), "a")
	f.Fuzz(func(t *testing.T, value []byte, key string) {
		got := jsontext.String(value, key)
		jsontext.ReadMeta(value)
		jsontext.Untyped(value)
		_, _, _ = jsontext.Open(append([]byte(nil), value...))
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

// FuzzMarshal: the encoder writes the bytes of encoding/json.
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
		got, err := jsontext.Marshal(value)
		if err != nil || string(got) != string(want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	})
}

// FuzzUnmarshal: input that the decoder accepts is decoded as the library decodes it,
// and it accepts what the encoder writes.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		sample, `{"a":[1.5,-0,1e3,1E+2,null,true,false,"<\u00e9\n\u2028",[],{}, [[1]]],"":{},"b":[]}`, ` {"a" : 12345678901234567890 , "b":-9223372036854775808} `,
		`{"a":1,"a":2}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":--1}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", "{\"a\":\"\n\"}", `{"a":nul}`, `{"a":1}x`, `[]`, ``, `{`, `{"a"`, `{"a":"\`,
		`{"a\u0062":1,"ab":2}`, `{"a":1e999}`, `{"metadata":{"b":1,"a":2},"s":{"b":[ {"z":1,"a":"<&>\"\\\n\u0041\/"} ],"a":{"c":{},"b":{ }},"é":"é\u2028"},"n":[1.0,1.5,-0,1e30,0.10],"u":{"b":1,"a":2,"a":3}}`,
		`{"a":{"b":{"z":1,"y":{"b":2,"a":3},"x":[]}},"c":{"d":10000000000000000000,"e":-7},"f":"","g":null,"h":"\u007f"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := jsontext.Unmarshal(text)
		var want map[string]any
		strict, err := kjson.UnmarshalStrict(text, &want)
		if !ok {
			if canonical, encodeErr := json.Marshal(want); err == nil && encodeErr == nil && want != nil {
				if _, ok := jsontext.Unmarshal(canonical); !ok && len(canonical) < 400 {
					t.Errorf("does not take %s", canonical)
				}
			}
			return
		}
		if err != nil || len(strict) > 0 {
			t.Fatalf("takes %q, the library says %v, %v", text, err, strict)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-library +ours):\n%s", text, diff)
		}
	})
}

// TestReaderTakesNoValueForAnother reads every kind of value as if it were of another one: it
// is consumed whole, and nothing panics.
func TestReaderTakesNoValueForAnother(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(r *jsontext.Reader){
		"an object": func(r *jsontext.Reader) {
			for _, ok := r.Member(); ok; _, ok = r.Member() {
				r.Skip()
			}
		},
		"a list": func(r *jsontext.Reader) {
			for r.Element() {
				r.Skip()
			}
		},
		"a string": func(r *jsontext.Reader) { r.Text() },
		"a number": func(r *jsontext.Reader) { r.Number() },
		"anything": func(r *jsontext.Reader) { r.Take() },
	} {
		for _, text := range []string{"", "null", "true", "1", "-1.5", `""`, `"a\"b"`, "[]", `[1,[2],{}]`, "{}", `{"a":null,"b":{"c":[]}}`} {
			r := jsontext.Text(text).Reader()
			if read(&r); r.Kind() != 0 {
				t.Errorf("%s is left at %q when it is read as %s", text, r.Kind(), name)
			}
			if text == "" {
				continue
			}
			r = jsontext.Text("[" + text + `,"next"]`).Reader()
			if r.Element(); r.Kind() != text[0] {
				t.Fatalf("the reader is at %q", r.Kind())
			}
			if read(&r); !r.Element() || r.Text() != "next" || r.Element() {
				t.Errorf("%s is not followed by the next element when it is read as %s", text, name)
			}
		}
	}
}

// FuzzPlainYAML: JSON that is accepted as plain is what a strict YAML parser returns.
func FuzzPlainYAML(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","metadata":{"name":"x","labels":{"yes":"no","1":"2"}},"spec":{"n":-1,"on":true,"null":null,"l":[],"m":{},"s":"# - ? : ! & * | > %@ a: b"}}`,
		"{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  }\n}\n", `{"a":1.0}`, `{"a":1e3}`, `{"<<":{"b":1}}`, `{"a":1,"a":2}`, `{"a":"\u00e9"}`, `{"a":"é"}`, `{"a":9223372036854775808}`, `{"a":-0}`,
		`{"":1}`, `{"a" :1 , "b":[ {"c":1} ,2]}`, `{"a":"2001-01-01","~":"~","=":"="}`, "{\"a\":1}\n\n", " {\"a\":1}", "\n{\"a\":1}", "{\"\"\n:0}", "{\"a\"\n :0}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := jsontext.Unmarshal(text)
		if !ok || !jsontext.PlainYAML(text) {
			return
		}
		raw, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			t.Fatalf("takes %q, YAML says %v", text, err)
		}
		var want map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-YAML +ours):\n%s", text, diff)
		}
	})
}

// FuzzRaw holds the scanner of stored objects to what encoding/json finds, for all JSON, and to
// not failing, for all else.
func FuzzRaw(f *testing.F) {
	f.Add(`{"a":{"b":[1,"]}\\\"",{}]},"metadata":{"uid":"x"},"z":null}`, "metadata")
	f.Add(`{"a":1,"a":2}`, "b")
	f.Add(`{"`, "a")
	f.Add(`{"a":"\`, "a")
	f.Fuzz(func(t *testing.T, text, name string) {
		jsontext.Raw([]byte(text), name) // whatever it is, it ends
		var compact bytes.Buffer
		var object map[string]json.RawMessage
		if json.Compact(&compact, []byte(text)) != nil || json.Unmarshal(compact.Bytes(), &object) != nil || object == nil {
			return
		}
		if !utf8.ValidString(text) {
			return // encoding/json replaces what is not UTF-8; objects are stored after that
		}
		if strings.ContainsAny(text, `\`) || len(object) != strings.Count(topLevel(compact.Bytes()), ":") {
			return // keys with escapes, and keys that stand twice, are not ours
		}
		got := jsontext.Raw(compact.Bytes(), name)
		if want := object[name]; !bytes.Equal(got, want) {
			t.Errorf("member %q of %s: got %s, want %s", name, compact.Bytes(), got, want)
		}
	})
}

// topLevel returns the text of an object without strings and nested values.
func topLevel(object []byte) string {
	var out strings.Builder
	depth, quoted := 0, false
	for _, c := range object {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case depth == 1:
			out.WriteByte(c)
		}
	}
	return out.String()
}
