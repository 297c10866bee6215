// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Canonicalize returns the canonical encoding of a JSON text, which must have no white
// space around it and must not be changed any more.
func Canonicalize(text []byte) (value Text, ok bool) {
	f := canonicalizer{in: text}
	if !f.value(0) || f.at != len(text) {
		return "", false
	}
	return f.rawFrom(0), true
}

// canonicalizer writes the canonical encoding of a value. While that equals the text
// itself, it writes nothing.
type canonicalizer struct {
	in   []byte
	at   int
	from int    // the text from here on is not written yet
	out  []byte // nil: all of the text up to here is canonical
	// open members of all objects around the position.
	members []member
}

// member is a member of an object: its name in the text, and its place in the output.
type member struct {
	name       string
	begin, end int
}

// rawFrom returns the value that was consumed from begin on.
func (f *canonicalizer) rawFrom(begin int) Text {
	canonical := f.in[begin:f.at]
	if f.out != nil {
		f.flush(f.at)
		canonical = f.out
	}
	return View(canonical)
}

// flush writes the text up to end.
func (f *canonicalizer) flush(end int) {
	if f.out == nil {
		f.out = make([]byte, 0, len(f.in)-f.from)
	}
	f.out = append(f.out, f.in[f.from:end]...)
	f.from = end
}

// written is the length of the output up to the current position.
func (f *canonicalizer) written() int { return len(f.out) + f.at - f.from }

// space skips white space.
func (f *canonicalizer) space() {
	for begin := f.at; f.at < len(f.in); f.at++ {
		switch f.in[f.at] {
		case ' ', '\n', '\r', '\t':
			continue
		}
		if f.at > begin {
			f.flush(begin)
			f.from = f.at
		}
		return
	}
}

// next consumes a character if it is the given one, and white space before it.
func (f *canonicalizer) next(c byte) bool {
	f.space()
	if f.at < len(f.in) && f.in[f.at] == c {
		f.at++
		return true
	}
	return false
}

func (f *canonicalizer) value(depth int) bool {
	if f.at == len(f.in) || depth > maxDepth {
		return false
	}
	switch f.in[f.at] {
	case '{':
		return f.object(depth)
	case '[':
		return f.list(depth)
	case '"':
		return f.text()
	case 't':
		return f.word("true")
	case 'f':
		return f.word("false")
	case 'n':
		return f.word("null")
	}
	return f.number()
}

func (f *canonicalizer) word(word string) bool {
	if !bytes.HasPrefix(f.in[f.at:], []byte(word)) {
		return false
	}
	f.at += len(word)
	return true
}

func (f *canonicalizer) list(depth int) bool {
	f.at++
	if f.next(']') {
		return true
	}
	for {
		f.space()
		if !f.value(depth + 1) {
			return false
		}
		if f.next(']') {
			return true
		}
		if !f.next(',') {
			return false
		}
	}
}

func (f *canonicalizer) object(depth int) bool {
	f.at++
	if f.next('}') {
		return true
	}
	first, sorted, last := len(f.members), true, ""
	for {
		if f.space(); f.at == len(f.in) || f.in[f.at] != '"' {
			return false
		}
		begin := f.written()
		name, ok := f.name()
		if !ok || !f.next(':') {
			return false
		}
		f.space()
		if !f.value(depth + 1) {
			return false
		}
		sorted = sorted && (len(f.members) == first || last < name)
		last = name
		f.members = append(f.members, member{name, begin, f.written()})
		if f.next('}') {
			break
		}
		if !f.next(',') {
			return false
		}
	}
	ok := sorted || f.sort(f.members[first:])
	f.members = f.members[:first]
	return ok
}

// sort sorts the members of the object that was consumed last. It returns false if one
// is a duplicate.
func (f *canonicalizer) sort(members []member) bool {
	begin, text := members[0].begin, f.in[f.from:f.at]
	// Mostly nothing is written yet: then the members are copied from the text itself.
	first := f.out == nil
	if first {
		f.out = append(make([]byte, 0, len(f.in)-f.from), text[:begin]...)
	} else {
		f.flush(f.at)
		text = f.out
	}
	end := len(f.out)
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for i, m := range members {
		if i > 0 {
			if members[i-1].name == m.name {
				return false
			}
			f.out = append(f.out, ',')
		}
		f.out = append(f.out, text[m.begin:m.end]...)
	}
	if first {
		f.out, f.from = append(f.out, '}'), f.at
		return true
	}
	copy(f.out[begin:], f.out[end:])
	f.out = f.out[:end]
	return true
}

// name consumes the name of a member.
func (f *canonicalizer) name() (string, bool) {
	begin := f.at + 1
	for i := begin; i < len(f.in); i++ {
		if f.in[i] == '"' {
			f.at = i + 1
			return unsafe.String(unsafe.SliceData(f.in[begin:]), i-begin), true
		}
		if !PlainByte(f.in[i]) {
			break
		}
	}
	d := decoding{value: f.in, at: f.at}
	name, ok := d.text()
	if !ok {
		return "", false
	}
	f.write(AppendText(nil, name), d.at)
	return name, true
}

// text consumes a string.
func (f *canonicalizer) text() bool {
	for i := f.at + 1; i < len(f.in); i++ {
		c := f.in[i]
		switch {
		case PlainByte(c):
		case c == '"':
			f.at = i + 1
			return true
		case c == '\\' && i+1 < len(f.in) && strings.IndexByte(`"\nrtbf`, f.in[i+1]) >= 0:
			i++
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(f.in[i:])
			if r == utf8.RuneError && size == 1 {
				return false
			}
			if r == '\u2028' || r == '\u2029' {
				return f.unusual()
			}
			i += size - 1
		default:
			return f.unusual()
		}
	}
	return false
}

// unusual consumes a string that is not encoded canonically.
func (f *canonicalizer) unusual() bool {
	d := decoding{value: f.in, at: f.at}
	decoded, ok := d.text()
	if !ok {
		return false
	}
	f.write(AppendText(nil, decoded), d.at)
	return true
}

// write replaces the text up to end with its canonical encoding.
func (f *canonicalizer) write(canonical []byte, end int) {
	if !bytes.Equal(canonical, f.in[f.at:end]) {
		f.flush(f.at)
		f.out, f.from = append(f.out, canonical...), end
	}
	f.at = end
}

// number consumes a number, unless decoding its canonical encoding would give another
// one.
func (f *canonicalizer) number() bool {
	d := decoding{value: f.in, at: f.at}
	number, ok := d.number()
	if !ok {
		return false
	}
	switch n := number.(type) {
	case int64:
		var buffer [20]byte
		f.write(strconv.AppendInt(buffer[:0], n, 10), d.at)
		return true
	case float64:
		encoded, ok := fraction(n)
		if ok {
			f.write(encoded, d.at)
		}
		return ok
	}
	return false
}

// fraction encodes a number. ok is false if it looks like an integer, which it would be
// decoded as.
func fraction(n float64) (encoded []byte, ok bool) {
	encoded, err := json.Marshal(n)
	return encoded, err == nil && bytes.ContainsAny(encoded, ".e")
}
