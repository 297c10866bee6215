// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"maps"
	"strconv"
	"strings"
	"unsafe"
)

// RawValue is a JSON value that was not decoded: its canonical encoding. It stands
// where decoding would put maps, lists and scalars, and shares the memory of the
// request body or the record that it was read from.
//
// The canonical encoding has no white space, sorted and unique object keys, and strings
// and numbers as [Marshal] writes them. So two raw values are equal if their texts are,
// and encoding one copies its text.
//
// Raw values occur as members of unstructured objects during a write, other than
// apiVersion, kind and metadata, and as metadata.managedFields; nowhere else. They are
// immutable. A value without a canonical encoding of the same meaning, such as 1.0
// (which would be decoded as an integer), stays decoded; so a member may be in either
// form. Code that needs maps calls [DecodeMembers] first.
type RawValue string

// Decode returns the decoded value.
func (f RawValue) Decode() any {
	d := decoding{value: unsafe.Slice(unsafe.StringData(string(f)), len(f))}
	value, _ := d.element(0)
	return value
}

// IsObject reports whether the value is an object.
func (f RawValue) IsObject() bool { return f != "" && f[0] == '{' }

// EncodeMembers replaces the decoded members of an object with raw ones, if they have a
// canonical encoding.
func EncodeMembers(content map[string]any) {
	for name, value := range content {
		if alwaysDecoded(name) {
			continue
		}
		if raw, ok := EncodeValue(value); ok {
			content[name] = raw
		}
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		if record, has := metadata["managedFields"]; has {
			if raw, ok := EncodeValue(record); ok {
				metadata["managedFields"] = raw
			}
		}
	}
}

// alwaysDecoded reports whether a member of an object is never raw.
func alwaysDecoded(name string) bool {
	return name == "metadata" || name == "apiVersion" || name == "kind"
}

// EncodeValue returns the canonical encoding of a decoded value; a raw value is
// returned unchanged.
func EncodeValue(value any) (raw RawValue, ok bool) {
	if raw, ok = value.(RawValue); ok {
		return raw, true
	}
	if !hasCanonicalText(value) {
		return "", false
	}
	text, err := appendValue(nil, value)
	if err != nil {
		return "", false
	}
	return RawValue(unsafe.String(unsafe.SliceData(text), len(text))), true
}

// hasCanonicalText reports whether encoding and decoding a value returns the same
// value.
func hasCanonicalText(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if !hasCanonicalText(member) {
				return false
			}
		}
		return v != nil
	case []any:
		for _, element := range v {
			if !hasCanonicalText(element) {
				return false
			}
		}
		return v != nil
	case float64:
		_, ok := fraction(v)
		return ok
	case nil, string, bool, int64:
		return true
	}
	return false
}

// DecodeMembers decodes the raw members of an object, in place, and reports whether
// there were any.
func DecodeMembers(content map[string]any) (had bool) {
	for name, value := range content {
		if raw, ok := value.(RawValue); ok {
			content[name], had = raw.Decode(), true
		}
	}
	if metadata, record, raw := rawManagedFields(content); raw {
		metadata["managedFields"], had = record.Decode(), true
	}
	return had
}

// rawManagedFields returns the metadata of an object and its managedFields if they are
// raw.
func rawManagedFields(content map[string]any) (metadata map[string]any, record RawValue, ok bool) {
	if metadata, ok = content["metadata"].(map[string]any); ok {
		record, ok = metadata["managedFields"].(RawValue)
	}
	return metadata, record, ok
}

// DecodedMembers returns an object without raw members: the same map if it has none.
func DecodedMembers(content map[string]any) map[string]any {
	metadata, _, raw := rawManagedFields(content)
	recorded := raw
	for _, value := range content {
		if _, is := value.(RawValue); is {
			raw = true
		}
	}
	if !raw {
		return content
	}
	out := maps.Clone(content)
	if recorded {
		out["metadata"] = maps.Clone(metadata)
	}
	DecodeMembers(out)
	return out
}

// RawReader walks over raw values. The caller must consume every value that the reader
// is positioned at, with one of its methods or by walking over it.
type RawReader struct {
	text string
	at   int
}

// Reader returns a reader positioned at the value.
func (f RawValue) Reader() RawReader { return RawReader{text: string(f)} }

// Kind returns the first character of the current value, which determines its type.
func (r *RawReader) Kind() byte { return r.text[r.at] }

// Member moves to the first member of an object, or to the next one after a member was
// consumed. ok is false at the end.
func (r *RawReader) Member() (name string, ok bool) {
	c := r.text[r.at]
	r.at++
	if c == '{' && r.text[r.at] == '}' {
		r.at++
		return "", false
	}
	if c == '}' {
		return "", false
	}
	rest := r.text[r.at+1:]
	name = rest[:strings.IndexByte(rest, '"')]
	if strings.IndexByte(name, '\\') >= 0 {
		name = r.Text()
		r.at++
		return name, true
	}
	r.at += len(name) + len(`"":`)
	return name, true
}

// Element moves to the first element of a list, or to the next one. It returns false at
// the end.
func (r *RawReader) Element() bool {
	c := r.text[r.at]
	r.at++
	if c == '[' && r.text[r.at] == ']' {
		r.at++
		return false
	}
	return c != ']'
}

// Take consumes a value and returns it raw.
func (r *RawReader) Take() RawValue {
	begin := r.at
	r.Skip()
	return RawValue(r.text[begin:r.at])
}

// Skip consumes a value.
func (r *RawReader) Skip() {
	value := unsafe.Slice(unsafe.StringData(r.text), len(r.text))
	if end := Skip(value, r.at); end > 0 {
		r.at = end
		return
	}
	r.at = len(r.text)
}

// Text consumes a string.
func (r *RawReader) Text() string {
	value := unsafe.Slice(unsafe.StringData(r.text), len(r.text))
	s, end, _ := text(value, r.at)
	r.at = end
	return s
}

// Number consumes a number: an integer, unless isFraction.
func (r *RawReader) Number() (whole int64, fraction float64, isFraction bool) {
	text := string(r.Take())
	whole, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return whole, 0, false
	}
	fraction, _ = strconv.ParseFloat(text, 64) // it was parsed before
	return 0, fraction, true
}
