// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package doc

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/internal/jsontext"
)

// Value is a member of a [Doc]. The zero value is one that does not exist, which null is not.
type Value struct {
	text jsontext.Text
	// decoded is the value if it has no canonical text; it is never changed.
	decoded any
}

// Of returns a decoded JSON value, which must not be changed any more.
func Of(value any) Value {
	if text, ok := jsontext.EncodeValue(value); ok {
		return Value{text: text}
	}
	return Value{decoded: value}
}

// OfText returns a value by its canonical text.
func OfText(text jsontext.Text) Value { return Value{text: text} }

// read reads a value.
func read(at jsontext.Position) (v Value, ok bool) {
	if v.text, ok = at.Text(); !ok {
		v.decoded, ok = at.Value()
	}
	return v, ok
}

// Exists reports whether there is a value.
func (v Value) Exists() bool { return v.text != "" || v.decoded != nil }

// Text returns the canonical text; ok is false if the value has none or does not exist.
func (v Value) Text() (text jsontext.Text, ok bool) { return v.text, v.text != "" }

// Decode returns the decoded value: a copy, which the caller may change. It is nil for one
// that does not exist.
func (v Value) Decode() any {
	if v.text != "" {
		return v.text.Decode()
	}
	return runtime.DeepCopyJSONValue(v.decoded)
}

// String returns the value if it is a string.
func (v Value) String() (text string, ok bool) {
	if v.text == "" || v.text[0] != '"' {
		return "", false
	}
	r := v.text.Reader()
	return r.Text(), true
}

// Equal compares values as decoded JSON.
func (v Value) Equal(other Value) bool {
	if v.text != "" && other.text != "" || !v.Exists() || !other.Exists() {
		return v.text == other.text && v.Exists() == other.Exists()
	}
	return jsontext.Equal(v.Decode(), other.Decode())
}

func (v Value) append(out []byte) ([]byte, error) {
	if v.text != "" {
		return append(out, v.text...), nil
	}
	return jsontext.AppendValue(out, v.decoded)
}
