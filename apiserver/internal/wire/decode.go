// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// maxDepth is how deep plain JSON may be nested.
const maxDepth = 500

// Unmarshal decodes a JSON object as sigs.k8s.io/json does into a
// map[string]any, without reflection and without copying: the strings share the
// memory of value, which must not change any more.
//
// It knows plain JSON only. false means that value is something else, be it
// malformed, of another type, with fields that repeat, or in an unusual
// encoding: the library decodes that, or explains what is wrong.
func Unmarshal(value []byte) (object map[string]any, ok bool) {
	d := decoding{value: value}
	return d.whole()
}

// decoding is a place in a text, and the elements of the lists that are open
// there.
type decoding struct {
	value []byte
	at    int
	open  []any
	// freezes tells that the members of the whole object stay frozen; inMetadata that
	// the place is below its metadata.
	freezes, inMetadata bool
}

// whole decodes the object that the text is.
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

// next skips space and takes a character if it is the given one.
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
	d.at++
	out := map[string]any{}
	if d.next('}') {
		return out, true
	}
	for fields := 1; ; fields++ {
		if d.space(); d.at == len(d.value) || d.value[d.at] != '"' {
			return nil, false
		}
		name, ok := d.text()
		if !ok || !d.next(':') {
			return nil, false
		}
		d.space()
		var member any
		if depth == 0 {
			d.inMetadata = name == "metadata"
		}
		if d.freezes && (depth == 0 && !thawedByName(name) || depth == 1 && d.inMetadata && name == "managedFields") {
			member, ok = d.freeze(depth + 1)
		} else {
			member, ok = d.element(depth + 1)
		}
		if !ok {
			return nil, false
		}
		if out[name] = member; len(out) != fields {
			return nil, false // the field was there already
		}
		if d.next('}') {
			return out, true
		}
		if !d.next(',') {
			return nil, false
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

// number decodes a number as the library does: one without a decimal point is
// an integer if it can be.
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

// UnmarshalYAML decodes a YAML text that happens to be plain JSON, as clients
// mostly send it, to what a YAML parser would make of it. false means that the
// parser has to look: at anything that it might read in another way, such as
// fractions, escapes and characters beyond ASCII.
func UnmarshalYAML(text []byte) (object map[string]any, ok bool) {
	key := 0       // how long a key can be here
	first := false // whether this line has only spaces so far; no key ends on another line
	for i, c := range text {
		switch {
		case c == ':' && first:
			return nil, false
		case c == '"', c == '\n':
			key = 0
		case c < ' ', c > '~', c == '\\', c == '<' && i > 0 && text[i-1] == '<':
			return nil, false
		}
		if key++; key > maxYAMLKey {
			return nil, false
		}
		first = c == '\n' || first && c == ' '
	}
	object, ok = Unmarshal(text)
	return object, ok && !fractional(object)
}

// maxYAMLKey is less than how far a YAML parser looks for the end of a key.
const maxYAMLKey = 1000

// fractional reports whether there is a number that is no integer.
func fractional(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if fractional(member) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if fractional(element) {
				return true
			}
		}
	case float64:
		return true
	}
	return false
}
