// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"strconv"
	"strings"
	"unsafe"
)

// Text is a JSON value in its canonical encoding: without white space, with sorted and unique
// object keys, and with strings and numbers as [Marshal] writes them. So two values are equal if
// their texts are, and encoding one copies its text.
//
// A value without a canonical encoding of the same meaning, such as 1.0 (which would be decoded
// as an integer), has no text.
type Text string

// View returns a text that must not be changed any more, which it shares memory with.
func View(text []byte) Text { return Text(unsafe.String(unsafe.SliceData(text), len(text))) }

// Decode returns the decoded value.
func (t Text) Decode() any {
	d := decoding{value: unsafe.Slice(unsafe.StringData(string(t)), len(t))}
	value, _ := d.element(0)
	return value
}

// IsObject reports whether the value is an object.
func (t Text) IsObject() bool { return t != "" && t[0] == '{' }

// EncodeValue returns the text of a decoded value.
func EncodeValue(value any) (text Text, ok bool) {
	if text, ok = value.(Text); ok {
		return text, true
	}
	if !hasCanonicalText(value, 0) {
		return "", false
	}
	out, err := appendValue(nil, value)
	if err != nil {
		return "", false
	}
	return View(out), true
}

// hasCanonicalText reports whether encoding and decoding a value returns the same
// value.
func hasCanonicalText(value any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if !hasCanonicalText(member, depth+1) {
				return false
			}
		}
		return v != nil
	case []any:
		for _, element := range v {
			if !hasCanonicalText(element, depth+1) {
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

// Reader walks over a value. The caller must consume every value that the reader
// is positioned at, with one of its methods or by walking over it.
type Reader struct {
	text string
	at   int
}

// Reader returns a reader positioned at the value.
func (t Text) Reader() Reader { return Reader{text: string(t)} }

// Kind returns the first character of the current value, which determines its type; 0 for the
// text of a value that does not exist.
func (r *Reader) Kind() byte {
	if r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

// Member moves to the first member of an object, or to the next one after a member was
// consumed. ok is false at the end. A value that is no object, such as null, is consumed as
// one that has no members.
func (r *Reader) Member() (name string, ok bool) {
	switch r.Kind() {
	case '{':
		if r.at++; r.Kind() == '}' {
			r.at++
			return "", false
		}
	case ',':
		r.at++
	case '}':
		r.at++
		return "", false
	default:
		r.Skip()
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
// the end. A value that is no list is consumed as one that has no elements.
func (r *Reader) Element() bool {
	switch r.Kind() {
	case '[':
		if r.at++; r.Kind() != ']' {
			return true
		}
		r.at++
	case ',':
		r.at++
		return true
	case ']':
		r.at++
	default:
		r.Skip()
	}
	return false
}

// Take consumes a value and returns its text.
func (r *Reader) Take() Text {
	begin := r.at
	r.Skip()
	return Text(r.text[begin:r.at])
}

// Skip consumes a value.
func (r *Reader) Skip() {
	value := unsafe.Slice(unsafe.StringData(r.text), len(r.text))
	if end := Skip(value, r.at); end > 0 {
		r.at = end
		return
	}
	r.at = len(r.text)
}

// Text consumes a string; another value is "".
func (r *Reader) Text() string {
	if r.Kind() != '"' {
		r.Skip()
		return ""
	}
	value := unsafe.Slice(unsafe.StringData(r.text), len(r.text))
	s, end, _ := text(value, r.at)
	r.at = end
	return s
}

// Number consumes a number: an integer, unless isFraction.
func (r *Reader) Number() (whole int64, fraction float64, isFraction bool) {
	text := string(r.Take())
	whole, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return whole, 0, false
	}
	fraction, _ = strconv.ParseFloat(text, 64) // it was parsed before
	return 0, fraction, true
}
