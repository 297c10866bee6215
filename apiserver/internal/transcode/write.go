// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package transcode

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// maxDepth is how deep messages may be nested.
const maxDepth = 200

// long is the size in bytes from which sharing memory pays.
const long = 256

// Write converts an object in JSON to protobuf and passes it to take, which must not
// keep it; shared are long parts of the JSON that occur in it unchanged. If it returns
// false, take was not called and the JSON must be decoded.
func (p *Plan) Write(value []byte, take func(content []byte, shared [][]byte)) bool {
	w := p.writers.Get().(*writer)
	defer p.writers.Put(w)
	w.in, w.at, w.out, w.pieces, w.depth = value, 0, w.out[:0], w.pieces[:0], 0
	defer func() {
		w.in = nil
		clear(w.shared)
		w.shared = w.shared[:0]
	}()
	w.space()
	if !w.message(p.root) {
		return false
	}
	if w.space(); w.at != len(w.in) {
		return false
	}
	take(w.out, w.shared)
	return true
}

// writer is a position in the JSON and the protobuf of what precedes it.
type writer struct {
	in  []byte
	at  int
	out []byte
	// pieces are the fields of the open messages whose JSON order differs; together is
	// the buffer in which they are sorted.
	pieces   []piece
	together []byte
	entries  []entry
	shared   [][]byte
	depth    int
}

// piece is a field that has been written.
type piece struct{ rank, start, end int }

// entry is an entry of a map that has been written.
type entry struct{ start, end int }

// keyOf returns the key of an entry, which begins with its tag.
func keyOf(entry []byte) []byte {
	for range 2 { // the tag of the entry and its length
		_, n := binary.Uvarint(entry)
		entry = entry[n:]
	}
	size, n := binary.Uvarint(entry[1:])
	return entry[1+n : 1+n+int(size)]
}

func (w *writer) space() {
	for w.at < len(w.in) {
		switch w.in[w.at] {
		case ' ', '\n', '\r', '\t':
			w.at++
		default:
			return
		}
	}
}

// next consumes a character if it is the given one, and the white space around it.
func (w *writer) next(c byte) bool {
	w.space()
	if w.at == len(w.in) || w.in[w.at] != c {
		return false
	}
	w.at++
	w.space()
	return true
}

// null consumes a null.
func (w *writer) null() bool {
	if len(w.in)-w.at < 4 || string(w.in[w.at:w.at+4]) != "null" {
		return false
	}
	w.at += 4
	return true
}

// skip consumes a value.
func (w *writer) skip() bool {
	end := wire.Skip(w.in, w.at)
	if end < 0 {
		return false
	}
	w.at = end
	return true
}

// text consumes a string, which shares the memory of the JSON unless it has escapes.
func (w *writer) text() ([]byte, bool) {
	if w.at == len(w.in) || w.in[w.at] != '"' {
		return nil, false
	}
	rest := w.in[w.at+1:]
	for i, c := range rest {
		switch {
		case c == '"':
			w.at += i + 2
			return rest[:i], true
		case c == '\\', c >= utf8.RuneSelf, c < ' ':
			begin := w.at
			if !w.skip() {
				return nil, false
			}
			return unescape(w.in[begin:w.at])
		}
	}
	return nil, false
}

func unescape(literal []byte) ([]byte, bool) {
	var s string
	err := json.Unmarshal(literal, &s)
	return []byte(s), err == nil
}

// message consumes an object and writes its fields.
func (w *writer) message(m *message) bool {
	if w.depth++; w.depth > maxDepth || !w.next('{') {
		return false
	}
	start, first, expected, last := len(w.out), len(w.pieces), 0, -1
	for more := !w.next('}'); more; {
		name, ok := w.text()
		if !ok || !w.next(':') {
			return false
		}
		rank, isText := -1, false
		if i := m.find(name, expected); i >= 0 {
			rank, isText, expected = m.keys[i].rank, m.keys[i].text, i+1
		}
		switch {
		case isText:
			if _, ok := w.text(); !ok && !w.null() {
				return false
			}
		case rank < 0:
			if !w.skip() {
				return false
			}
		case w.null(): // same as absent
		case m.ordered:
			if rank <= last {
				return false // a duplicate, or not written by an encoder
			}
			w.missing(m, last+1, rank)
			if last = rank; !w.field(m.ranked[rank]) {
				return false
			}
		default:
			begin := len(w.out)
			if !w.field(m.ranked[rank]) {
				return false
			}
			w.pieces = append(w.pieces, piece{rank, begin, len(w.out)})
		}
		if more = w.next(','); !more && !w.next('}') {
			return false
		}
	}
	w.depth--
	if m.ordered {
		w.missing(m, last+1, len(m.ranked))
		return true
	}
	return w.order(m, start, first)
}

// missing writes the default bytes of absent fields.
func (w *writer) missing(m *message, from, to int) {
	for _, f := range m.ranked[from:to] {
		w.out = append(w.out, f.absent...)
	}
}

// find returns the index of a key, or -1. It is likely to be expected or soon after it.
func (m *message) find(name []byte, expected int) int {
	for i := expected; i < len(m.keys); i++ {
		if m.keys[i].name == string(name) {
			return i
		}
	}
	for i := range min(expected, len(m.keys)) {
		if m.keys[i].name == string(name) {
			return i
		}
	}
	return -1
}

// order sorts the fields of a message, written since start, into the order of protobuf.
func (w *writer) order(m *message, start, first int) bool {
	pieces := w.pieces[first:]
	for i := 1; i < len(pieces); i++ { // few, and mostly sorted
		for j := i; j > 0 && pieces[j].rank <= pieces[j-1].rank; j-- {
			if pieces[j].rank == pieces[j-1].rank {
				return false // a duplicate
			}
			pieces[j], pieces[j-1] = pieces[j-1], pieces[j]
		}
	}
	w.together = w.together[:0]
	rank := 0
	put := func(f *field) {
		if len(pieces) > 0 && pieces[0].rank == rank {
			w.together = append(w.together, w.out[pieces[0].start:pieces[0].end]...)
			pieces = pieces[1:]
		} else {
			w.together = append(w.together, f.absent...)
		}
		rank++
	}
	for i := range m.fields {
		f := &m.fields[i]
		if f.inner == nil {
			put(f)
			continue
		}
		w.together = append(w.together, f.tag...)
		begin := len(w.together) + reserved
		w.together = append(w.together, make([]byte, reserved)...)
		for _, of := range f.inner.ranked {
			put(of)
		}
		w.together = measure(w.together, begin)
	}
	w.out = append(w.out[:start], w.together...)
	w.pieces = w.pieces[:first]
	return true
}

// field consumes the value of a field, or its values, and writes them.
func (w *writer) field(f *field) bool {
	switch {
	case f.mapped:
		return w.entriesOf(f)
	case !f.list:
		return w.value(f)
	case !w.next('['):
		return false
	case w.next(']'):
		return true
	}
	for {
		if !w.value(f) {
			return false
		}
		if !w.next(',') {
			return w.next(']')
		}
	}
}

// entriesOf consumes an object with any keys and writes its entries, sorted.
func (w *writer) entriesOf(f *field) bool {
	if !w.next('{') {
		return false
	}
	if w.next('}') {
		return true
	}
	start, first, sorted := len(w.out), len(w.entries), true
	defer func() { w.entries = w.entries[:first] }()
	for {
		name, ok := w.text()
		if !ok || !w.next(':') {
			return false
		}
		begin := len(w.out)
		w.out = binary.AppendUvarint(w.out, uint64(f.number)<<3|2)
		inside := w.begin()
		w.out = appendBytes(append(w.out, 1<<3|2), name)
		if !w.value(f) {
			return false
		}
		w.end(inside)
		if n := len(w.entries); n > first && sorted {
			sorted = bytes.Compare(keyOf(w.out[w.entries[n-1].start:]), name) < 0
		}
		w.entries = append(w.entries, entry{begin, len(w.out)})
		if !w.next(',') {
			break
		}
	}
	if !sorted && !w.sort(start, first) {
		return false
	}
	return w.next('}')
}

// sort sorts the entries of a map.
func (w *writer) sort(start, first int) bool {
	entries := w.entries[first:]
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(keyOf(w.out[a.start:]), keyOf(w.out[b.start:])) })
	w.together = w.together[:0]
	for i, e := range entries {
		if i > 0 && bytes.Equal(keyOf(w.out[e.start:]), keyOf(w.out[entries[i-1].start:])) {
			return false // a duplicate
		}
		w.together = append(w.together, w.out[e.start:e.end]...)
	}
	w.out = append(w.out[:start], w.together...)
	return true
}

// reserved is the room for the length prefix of bytes that are not written yet.
const reserved = 2

// begin reserves room for a length prefix.
func (w *writer) begin() int {
	w.out = append(w.out, 0, 0)
	return len(w.out)
}

func (w *writer) end(begin int) { w.out = measure(w.out, begin) }

// measure writes the length prefix of the bytes from begin on; the room before them
// grows or shrinks.
func measure(out []byte, begin int) []byte {
	n := len(out) - begin
	switch {
	case n < 1<<7:
		copy(out[begin-1:], out[begin:])
		out[begin-reserved] = byte(n)
		return out[:len(out)-1]
	case n < 1<<14:
		out[begin-reserved], out[begin-1] = byte(n)|1<<7, byte(n>>7)
		return out
	}
	var length [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(length[:], uint64(n))
	return slices.Replace(out, begin-reserved, begin, length[:size]...)
}

func appendBytes(out, content []byte) []byte {
	return append(binary.AppendUvarint(out, uint64(len(content))), content...)
}

// value consumes one value and writes it with its tag.
func (w *writer) value(f *field) bool {
	w.out = append(w.out, f.tag...)
	switch f.shape {
	case shapeMessage:
		inside := w.begin()
		if !w.message(f.message) {
			return false
		}
		w.end(inside)
		return true
	case shapeText:
		text, ok := w.text()
		w.out = appendBytes(w.out, text)
		return ok
	case shapeInt32, shapeInt64:
		n, ok := w.integer(f.shape)
		w.out = binary.AppendUvarint(w.out, uint64(n))
		return ok
	case shapeBool:
		return w.boolean()
	case shapeBytes:
		return w.base64()
	case shapeTime:
		return w.time()
	case shapeQuantity:
		return w.quantity()
	case shapeIntOrString:
		return w.intOrString()
	}
	return w.raw(f)
}

func (w *writer) integer(s shape) (int64, bool) {
	begin := w.at
	for w.at < len(w.in) && (w.in[w.at] == '-' || w.in[w.at] >= '0' && w.in[w.at] <= '9') {
		w.at++
	}
	if w.at < len(w.in) && (w.in[w.at] == '.' || w.in[w.at]|0x20 == 'e') {
		return 0, false
	}
	bits := 64
	if s == shapeInt32 {
		bits = 32
	}
	n, err := strconv.ParseInt(string(w.in[begin:w.at]), 10, bits)
	return n, err == nil
}

func (w *writer) boolean() bool {
	for i, word := range [...]string{"false", "true"} {
		if len(w.in)-w.at >= len(word) && string(w.in[w.at:w.at+len(word)]) == word {
			w.at += len(word)
			w.out = append(w.out, byte(i))
			return true
		}
	}
	return false
}

func (w *writer) base64() bool {
	text, ok := w.text()
	if !ok {
		return false
	}
	inside := w.begin()
	out, err := base64.StdEncoding.AppendDecode(w.out, text)
	if err != nil {
		return false
	}
	w.out = out
	w.end(inside)
	return true
}

// time consumes a time, of which protobuf has the seconds; null is the zero time.
func (w *writer) time() bool {
	if w.null() {
		w.out = append(w.out, 0)
		return true
	}
	text, ok := w.text()
	if !ok {
		return false
	}
	t, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return false
	}
	inside := w.begin()
	if !t.IsZero() {
		w.out = binary.AppendUvarint(append(w.out, 1<<3), uint64(t.Unix()))
		w.out = append(w.out, 2<<3, 0)
	}
	w.end(inside)
	return true
}

func (w *writer) quantity() bool {
	text, ok := w.text()
	if !ok {
		return false
	}
	if !canonical(text) {
		q, err := resource.ParseQuantity(string(text))
		if err != nil {
			return false
		}
		text = []byte(q.String())
	}
	inside := w.begin()
	w.out = appendBytes(append(w.out, 1<<3|2), text)
	w.end(inside)
	return true
}

// canonical reports whether a quantity of common form is written canonically: in the
// largest unit of which it is a multiple.
func canonical(amount []byte) bool {
	n, digits := 0, 0
	for digits < len(amount) && digits < 10 && amount[digits] >= '0' && amount[digits] <= '9' {
		n = n*10 + int(amount[digits]-'0')
		digits++
	}
	if digits == 0 || digits == 10 || n == 0 || amount[0] == '0' {
		return false
	}
	switch string(amount[digits:]) {
	case "", "m", "k", "M", "G":
		return n%1000 != 0
	case "Ki", "Mi", "Gi":
		return n%1024 != 0
	}
	return false
}

func (w *writer) intOrString() bool {
	inside := w.begin()
	if w.at < len(w.in) && w.in[w.at] == '"' {
		text, ok := w.text()
		if !ok {
			return false
		}
		w.out = appendIntOrString(w.out, 1, 0, text)
	} else {
		n, ok := w.integer(shapeInt32)
		if !ok {
			return false
		}
		w.out = appendIntOrString(w.out, 0, n, nil)
	}
	w.end(inside)
	return true
}

// appendIntOrString appends the fields of a number, kind 0, or a text, kind 1.
func appendIntOrString(out []byte, kind byte, n int64, text []byte) []byte {
	out = append(out, 1<<3, kind, 2<<3)
	out = binary.AppendUvarint(out, uint64(n))
	return appendBytes(append(out, 3<<3|2), text)
}

// raw consumes any value: verbatim, or through its type.
func (w *writer) raw(f *field) bool {
	begin := w.at
	if !w.skip() {
		return false
	}
	value := w.in[begin:w.at]
	if string(value) == "null" {
		return false
	}
	if f.shape == shapeRaw {
		if len(value) >= long {
			w.shared = append(w.shared, value)
		}
		inside := w.begin()
		w.out = appendBytes(append(w.out, 1<<3|2), value)
		w.end(inside)
		return true
	}
	into := reflect.New(f.foreign).Interface()
	if wire.Decode(value, into) != nil {
		return false
	}
	content, err := into.(marshaler).Marshal()
	w.out = appendBytes(w.out, content)
	return err == nil
}
