// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// UnmarshalFrozen is [Unmarshal] that leaves the members of the object frozen.
func UnmarshalFrozen(value []byte) (object map[string]any, ok bool) {
	d := decoding{value: value, freezes: true}
	return d.whole()
}

// freeze takes a member of the object in frozen form, or decoded if it has none.
func (d *decoding) freeze(depth int) (any, bool) {
	f := freezing{in: d.value, at: d.at, from: d.at}
	if !f.value(depth) {
		return d.element(depth)
	}
	frozen := f.frozen(d.at)
	d.at = f.at
	return frozen, true
}

// FreezeText freezes a JSON text without space around it, which must not change any more.
func FreezeText(text []byte) (frozen Frozen, ok bool) {
	f := freezing{in: text}
	if !f.value(0) || f.at != len(text) {
		return "", false
	}
	return f.frozen(0), true
}

// freezing writes the canonical text of a value. As long as that is the text itself it
// writes nothing.
type freezing struct {
	in   []byte
	at   int
	from int    // what follows is not yet written
	out  []byte // nil: all of the text was canonical up to here
	// members that are open, of all objects around the place.
	members []member
}

// member is a member of an object: its name in the text, and where it is written.
type member struct {
	name       string
	begin, end int
}

// frozen is the value that has been taken from a place on.
func (f *freezing) frozen(begin int) Frozen {
	canonical := f.in[begin:f.at]
	if f.out != nil {
		f.flush(f.at)
		canonical = f.out
	}
	return Frozen(unsafe.String(unsafe.SliceData(canonical), len(canonical)))
}

// flush writes the text up to a place.
func (f *freezing) flush(end int) {
	if f.out == nil {
		f.out = make([]byte, 0, len(f.in)-f.from)
	}
	f.out = append(f.out, f.in[f.from:end]...)
	f.from = end
}

// written is how much is written, up to the place.
func (f *freezing) written() int { return len(f.out) + f.at - f.from }

// space leaves space out.
func (f *freezing) space() {
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

// next takes a character if it is the given one, and space before it.
func (f *freezing) next(c byte) bool {
	f.space()
	if f.at < len(f.in) && f.in[f.at] == c {
		f.at++
		return true
	}
	return false
}

func (f *freezing) value(depth int) bool {
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

func (f *freezing) word(word string) bool {
	if !bytes.HasPrefix(f.in[f.at:], []byte(word)) {
		return false
	}
	f.at += len(word)
	return true
}

func (f *freezing) list(depth int) bool {
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

func (f *freezing) object(depth int) bool {
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

// sort brings the members of the object that was taken last into their order. It is
// false if one is there twice.
func (f *freezing) sort(members []member) bool {
	begin, text := members[0].begin, f.in[f.from:f.at]
	// Mostly nothing is written yet: then the text itself is what they are copied from.
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

// name takes the name of a member.
func (f *freezing) name() (string, bool) {
	begin := f.at + 1
	for i := begin; i < len(f.in); i++ {
		if f.in[i] == '"' {
			f.at = i + 1
			return unsafe.String(unsafe.SliceData(f.in[begin:]), i-begin), true
		}
		if !verbatim[f.in[i]] {
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

// verbatim are the characters that strings have in their encoding as they are.
var verbatim = func() (is [256]bool) {
	for c := byte(' '); c <= '~'; c++ {
		is[c] = !strings.ContainsRune(`"\<>&`, rune(c))
	}
	return is
}()

// text takes a string.
func (f *freezing) text() bool {
	for i := f.at + 1; i < len(f.in); i++ {
		c := f.in[i]
		switch {
		case verbatim[c]:
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

// unusual takes a string that is encoded in another way than here.
func (f *freezing) unusual() bool {
	d := decoding{value: f.in, at: f.at}
	decoded, ok := d.text()
	if !ok {
		return false
	}
	f.write(AppendText(nil, decoded), d.at)
	return true
}

// write takes the text up to a place, which is encoded as canonical.
func (f *freezing) write(canonical []byte, end int) {
	if !bytes.Equal(canonical, f.in[f.at:end]) {
		f.flush(f.at)
		f.out, f.from = append(f.out, canonical...), end
	}
	f.at = end
}

// number takes a number, unless it would be read again as another one.
func (f *freezing) number() bool {
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

// fraction encodes a number. ok tells that it does not look like an integer, as which it
// might be read again.
func fraction(n float64) (encoded []byte, ok bool) {
	encoded, err := json.Marshal(n)
	return encoded, err == nil && bytes.ContainsAny(encoded, ".e")
}
