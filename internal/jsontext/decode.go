// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// maxDepth is the nesting depth up to which plain JSON is decoded here.
const maxDepth = 500

// Unmarshal decodes a JSON object as sigs.k8s.io/json does into a
// map[string]any, without reflection and without copying: the strings share the
// memory of value, which must not change any more.
//
// It supports plain JSON only. false means that value is malformed, not an object, has
// duplicate members or uses an unusual encoding: the library decodes it, or returns the
// error.
//
//steer:fast decode
func Unmarshal(value []byte) (object map[string]any, ok bool) {
	d := decoding{value: value}
	return d.whole()
}

// Members reads a JSON object: do is called for each of its members, in their order and
// repetitions included, and has to consume it with a method of at. Like [Unmarshal] it
// supports plain JSON only, and what is read shares the memory of value. false: the text is
// not such an object, or do has returned false.
//
//steer:fast decode
func Members(value []byte, do func(name string, at Position) bool) bool {
	d := decoding{value: value}
	if d.space(); d.at == len(value) || value[d.at] != '{' {
		return false
	}
	if !d.members(func(name string) bool { return do(name, Position{&d, 1}) }) {
		return false
	}
	d.space()
	return d.at == len(value)
}

// Position is a value in a text that [Members] reads. One of its methods consumes it.
type Position struct {
	d     *decoding
	depth int
}

// IsObject reports whether the value is an object. It does not consume it.
func (p Position) IsObject() bool { return p.d.at < len(p.d.value) && p.d.value[p.d.at] == '{' }

// Members is [Members] for the value, which is an object.
func (p Position) Members(do func(name string, at Position) bool) bool {
	return p.d.members(func(name string) bool { return do(name, Position{p.d, p.depth + 1}) })
}

// Value decodes the value; ok is false if it is malformed.
func (p Position) Value() (value any, ok bool) { return p.d.element(p.depth) }

// Text returns the canonical text of the value; without one it consumes nothing.
func (p Position) Text() (text Text, ok bool) {
	f := canonicalizer{in: p.d.value, at: p.d.at, from: p.d.at}
	if !f.value(p.depth) {
		return "", false
	}
	text = f.rawFrom(p.d.at)
	p.d.at = f.at
	return text, true
}

// decoding is a position in a text, with the elements of the lists that are open there.
type decoding struct {
	value []byte
	at    int
	open  []any
}

// whole decodes the text, which must be one object.
func (d *decoding) whole() (map[string]any, bool) {
	d.space()
	if d.at == len(d.value) || d.value[d.at] != '{' {
		return nil, false
	}
	decoded, ok := d.element(0)
	if !ok {
		return nil, false
	}
	if d.space(); d.at != len(d.value) {
		return nil, false
	}
	return decoded.(map[string]any), true
}

func (d *decoding) space() {
	for d.at < len(d.value) {
		switch d.value[d.at] {
		case ' ', '\n', '\r', '\t':
			d.at++
		default:
			return
		}
	}
}

// next skips white space and consumes a character if it is the given one.
func (d *decoding) next(c byte) bool {
	d.space()
	if d.at < len(d.value) && d.value[d.at] == c {
		d.at++
		return true
	}
	return false
}

func (d *decoding) element(depth int) (any, bool) {
	if d.at == len(d.value) || depth > maxDepth {
		return nil, false
	}
	switch d.value[d.at] {
	case '{':
		return d.object(depth)
	case '[':
		return d.list(depth)
	case '"':
		text, ok := d.text()
		return text, ok
	case 't':
		return true, d.word("true")
	case 'f':
		return false, d.word("false")
	case 'n':
		return nil, d.word("null")
	}
	return d.number()
}

func (d *decoding) word(word string) bool {
	if len(d.value)-d.at < len(word) || string(d.value[d.at:d.at+len(word)]) != word {
		return false
	}
	d.at += len(word)
	return true
}

func (d *decoding) object(depth int) (any, bool) {
	out := map[string]any{}
	fields := 0
	ok := d.members(func(name string) bool {
		member, ok := d.element(depth + 1)
		out[name] = member
		fields++
		return ok && len(out) == fields // no member is a duplicate
	})
	return out, ok
}

// members consumes an object; do consumes the value of each member.
func (d *decoding) members(do func(name string) bool) bool {
	d.at++
	if d.next('}') {
		return true
	}
	for {
		if d.space(); d.at == len(d.value) || d.value[d.at] != '"' {
			return false
		}
		name, ok := d.text()
		if !ok || !d.next(':') {
			return false
		}
		d.space()
		if !do(name) {
			return false
		}
		if d.next('}') {
			return true
		}
		if !d.next(',') {
			return false
		}
	}
}

func (d *decoding) list(depth int) (any, bool) {
	d.at++
	if d.next(']') {
		return []any{}, true
	}
	first := len(d.open)
	for {
		d.space()
		element, ok := d.element(depth + 1)
		if !ok {
			return nil, false
		}
		d.open = append(d.open, element)
		if d.next(']') {
			break
		}
		if !d.next(',') {
			return nil, false
		}
	}
	out := make([]any, len(d.open)-first)
	copy(out, d.open[first:])
	clear(d.open[first:])
	d.open = d.open[:first]
	return out, true
}

func (d *decoding) text() (string, bool) {
	begin := d.at + 1
	plain := true
	for i := begin; i < len(d.value); i++ {
		switch c := d.value[i]; {
		case c == '"':
			d.at = i + 1
			if plain {
				return unsafe.String(unsafe.SliceData(d.value[begin:]), i-begin), true
			}
			if !utf8.Valid(d.value[begin:i]) {
				return "", false
			}
			var text string
			err := json.Unmarshal(d.value[begin-1:i+1], &text)
			return text, err == nil
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	return "", false
}

// number decodes a number as the library does: as int64 if it has no decimal point and
// fits, else as float64.
func (d *decoding) number() (any, bool) {
	begin := d.at
	i := begin
	digits := func() bool {
		from := i
		for i < len(d.value) && '0' <= d.value[i] && d.value[i] <= '9' {
			i++
		}
		return i > from
	}
	has := func(chars string) bool {
		for _, c := range []byte(chars) {
			if i < len(d.value) && d.value[i] == c {
				i++
				return true
			}
		}
		return false
	}
	has("-")
	if !has("0") && !digits() {
		return nil, false
	}
	float := false
	if has(".") {
		if float = true; !digits() {
			return nil, false
		}
	}
	exponent := has("eE")
	if exponent {
		if has("+-"); !digits() {
			return nil, false
		}
	}
	d.at = i
	text := string(d.value[begin:i])
	if !float && !exponent {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// PlainYAML reports whether a YAML parser makes of a text, if it is JSON, what a JSON parser
// does, as of what most clients send as YAML. A text with something that YAML may read
// differently, such as fractions, escapes and characters beyond ASCII, is not plain.
//
//steer:fast decode
func PlainYAML(text []byte) bool {
	key := 0       // the length of a key that ends here
	first := false // only spaces on this line so far; no key ends on another line
	quoted, digits := false, 0
	for i, c := range text {
		switch {
		case c == ':' && first:
			return false
		case c == '"':
			key, quoted = 0, !quoted
		case c == '\n':
			key = 0
		case c < ' ', c > '~', c == '\\', c == '<' && i > 0 && text[i-1] == '<':
			return false
		}
		switch {
		case quoted:
		case c >= '0' && c <= '9':
			if digits++; digits == maxYAMLDigits {
				return false
			}
		case c == '.', digits > 0 && (c == 'e' || c == 'E'):
			return false
		default:
			digits = 0
		}
		if key++; key > maxYAMLKey {
			return false
		}
		first = c == '\n' || first && c == ' '
	}
	return true
}

const (
	// maxYAMLKey is less than the length at which a YAML parser stops looking for the end
	// of a key.
	maxYAMLKey = 1000
	// maxYAMLDigits is the number of digits from which on an integer may need more than 64 bits.
	maxYAMLDigits = 19
)
