// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Read decodes JSON into an empty object of the plan's type if strict decoding would
// report nothing: no unknown or duplicate field, and nothing unusual. If it returns
// false, the library must decode it or return the error; the object's contents are then
// undefined. Strings share the memory of value, which must not be changed any more.
//
//steer:fast typed
func (p *Plan) Read(value []byte, object any) bool {
	return p.readAll(&reader{value: value}, object)
}

// ReadStored is Read for a document that was encoded here; the type may have only some
// of its fields.
func (p *Plan) ReadStored(value []byte, object any) bool {
	return p.readAll(&reader{value: value, some: true}, object)
}

func (p *Plan) readAll(r *reader, object any) bool {
	if r.space(); !p.root.read(r, reflect.ValueOf(object).UnsafePointer(), 0) {
		return false
	}
	r.space()
	return r.at == len(r.value)
}

// reader is a position in a document.
type reader struct {
	value []byte
	at    int
	some  bool // unknown fields are skipped
}

func (r *reader) space() {
	for r.at < len(r.value) {
		switch r.value[r.at] {
		case ' ', '\n', '\r', '\t':
			r.at++
		default:
			return
		}
	}
}

// next skips white space and consumes a character if it is the given one.
func (r *reader) next(c byte) bool {
	if r.at < len(r.value) && r.value[r.at] == c {
		r.at++
		return true
	}
	r.space()
	if r.at < len(r.value) && r.value[r.at] == c {
		r.at++
		return true
	}
	return false
}

// peek returns the current character; 0 at the end.
func (r *reader) peek() byte {
	if r.at < len(r.value) {
		return r.value[r.at]
	}
	return 0
}

func (r *reader) word(word string) bool {
	if len(r.value)-r.at < len(word) || string(r.value[r.at:r.at+len(word)]) != word {
		return false
	}
	r.at += len(word)
	return true
}

// text consumes a string.
func (r *reader) text() (string, bool) {
	if r.peek() != '"' {
		return "", false
	}
	begin := r.at + 1
	plain := true
	for i := begin; i < len(r.value); i++ {
		switch c := r.value[i]; {
		case c == '"':
			r.at = i + 1
			if plain {
				return unsafe.String(unsafe.SliceData(r.value[begin:]), i-begin), true
			}
			return unescaped(r.value[begin-1 : i+1])
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

// unescaped decodes a string with escapes. Unpaired surrogates, which decoders treat
// differently, are left to the library.
func unescaped(raw []byte) (string, bool) {
	var text string
	if !utf8.Valid(raw) || json.Unmarshal(raw, &text) != nil || strings.ContainsRune(text, utf8.RuneError) {
		return "", false
	}
	return text, true
}

// integer consumes an integer of size bytes.
func (r *reader) integer(size uintptr) (int64, bool) {
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	end := skipInteger(r.value, r.at)
	if end < 0 {
		return 0, false
	}
	if end < len(r.value) && (r.value[end] == '.' || r.value[end] == 'e' || r.value[end] == 'E') {
		return 0, false
	}
	n, err := strconv.ParseInt(unsafe.String(&r.value[r.at], end-r.at), 10, int(size)*8)
	r.at = end
	return n, err == nil
}

func (p *plan) read(r *reader, v unsafe.Pointer, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch p.kind {
	case KindText:
		text, ok := r.text()
		*(*string)(v) = text
		return ok
	case KindBool:
		if r.word("true") {
			*(*bool)(v) = true
			return true
		}
		return r.word("false")
	case KindInt:
		n, ok := r.integer(p.size)
		p.setCount(v, n)
		return ok
	case KindStruct:
		return p.readStruct(r, v, depth)
	case KindPointer:
		to := reflect.New(p.of.typ).UnsafePointer()
		*(*unsafe.Pointer)(v) = to
		return p.of.read(r, to, depth+1)
	case KindList:
		return p.readList(r, v, depth)
	case KindTexts, KindQuantities, KindBinaries:
		return p.readMap(r, v)
	case KindOctets:
		octets, ok := r.octets()
		*(*[]byte)(v) = octets
		return ok
	case KindTime:
		text, ok := r.text()
		at, err := time.Parse(time.RFC3339, text)
		(*metav1.Time)(v).Time = at.Local()
		return ok && err == nil
	case KindMicroTime:
		text, ok := r.text()
		at, err := time.Parse(metav1.RFC3339Micro, text)
		(*metav1.MicroTime)(v).Time = at.Local()
		return ok && err == nil
	case KindQuantity:
		return r.quantity((*resource.Quantity)(v))
	case KindIntOrString:
		into := (*intstr.IntOrString)(v)
		if r.peek() == '"' {
			text, ok := r.text()
			into.Type, into.StrVal = intstr.String, text
			return ok
		}
		n, ok := r.integer(unsafe.Sizeof(into.IntVal))
		into.IntVal = int32(n) // which has been seen to
		return ok
	case KindFields, KindRaw:
		return p.readRaw(r, v)
	}
	return p.readForeign(r, v)
}

func (p *plan) setCount(v unsafe.Pointer, n int64) {
	switch p.size {
	case 1:
		*(*int8)(v) = int8(n) // the number has this size
	case 2:
		*(*int16)(v) = int16(n) // the number has this size
	case 4:
		*(*int32)(v) = int32(n) // the number has this size
	default:
		*(*int64)(v) = n
	}
}

func (r *reader) octets() ([]byte, bool) {
	text, ok := r.text()
	if !ok || strings.ContainsAny(text, "\r\n") {
		return nil, false
	}
	octets, err := base64.StdEncoding.DecodeString(text)
	if octets == nil {
		octets = []byte{}
	}
	return octets, err == nil
}

func (r *reader) quantity(into *resource.Quantity) bool {
	begin := r.at
	var end int
	if r.peek() == '"' {
		if _, ok := r.text(); !ok {
			return false
		}
		begin, end = begin+1, r.at-1
	} else if _, ok := r.integer(8); !ok {
		return false
	} else {
		end = r.at
	}
	// ParseQuantity copies the text first and keeps nothing of it.
	amount, err := resource.ParseQuantity(strings.TrimSpace(unsafe.String(unsafe.SliceData(r.value[begin:]), end-begin)))
	*into = amount
	return err == nil
}

// raw consumes a compact value and returns it verbatim.
func (r *reader) raw() ([]byte, bool) {
	begin := r.at
	end := skipCompact(r.value, begin, 0)
	if end < 0 || r.value[begin] == 'n' || end < len(r.value) && strings.IndexByte(".eE", r.value[end]) >= 0 {
		return nil, false
	}
	r.at = end
	return r.value[begin:end], true
}

func (p *plan) readRaw(r *reader, v unsafe.Pointer) bool {
	raw, ok := r.raw()
	if !ok {
		return false
	}
	if p.kind == KindFields {
		(*metav1.FieldsV1)(v).SetRawBytes(raw)
		return true
	}
	return (*runtime.RawExtension)(v).UnmarshalJSON(raw) == nil
}

// skip consumes the value of a field that the type does not have, if that is allowed.
func (r *reader) skip() bool {
	if !r.some {
		return false
	}
	if r.peek() == 'n' {
		return r.word(null)
	}
	_, ok := r.raw()
	return ok
}

// readForeign decodes a value with the type's own UnmarshalJSON.
func (p *plan) readForeign(r *reader, v unsafe.Pointer) bool {
	if !p.reads {
		return false
	}
	raw, ok := r.raw()
	return ok && reflect.NewAt(p.typ, v).Interface().(json.Unmarshaler).UnmarshalJSON(raw) == nil
}

// nothing consumes a null, which leaves a field unchanged.
func (p *plan) nothing(r *reader) (is, ok bool) {
	if r.peek() != 'n' {
		return false, true
	}
	return true, p.kind != KindForeign && p.kind != KindRaw && p.kind != KindFields && r.word(null)
}

func (p *plan) readStruct(r *reader, v unsafe.Pointer, depth int) bool {
	if !r.next('{') {
		return false
	}
	if r.next('}') {
		return true
	}
	var seen [maxFields / 64]uint64
	for at := 0; ; at++ {
		r.space()
		name, ok := r.text()
		if !ok || !r.next(':') {
			return false
		}
		if at >= len(p.fields) || p.fields[at].name() != name {
			var known bool
			if at, known = p.byName[name]; !known {
				if !r.skip() {
					return false
				}
				if r.next('}') {
					return true
				}
				if !r.next(',') {
					return false
				}
				continue
			}
		}
		if seen[at/64]&(1<<(at%64)) != 0 {
			return false
		}
		seen[at/64] |= 1 << (at % 64)
		f := &p.fields[at]
		r.space()
		nothing, ok := f.plan.nothing(r)
		if !ok || !nothing && !f.plan.read(r, unsafe.Add(v, f.offset), depth+1) {
			return false
		}
		if r.next('}') {
			return true
		}
		if !r.next(',') {
			return false
		}
	}
}

func (p *plan) readList(r *reader, v unsafe.Pointer, depth int) bool {
	if !r.next('[') {
		return false
	}
	if r.next(']') {
		p.setList(v, reflect.MakeSlice(p.typ, 0, 0).UnsafePointer(), 0, 0)
		return true
	}
	block := 0
	for guess := p.last.Load(); int32(1)<<block < guess && block < longestBlock; {
		block++
	}
	room := 1 << block
	first := reflect.New(p.blocks[block]).UnsafePointer()
	n := 0
	for {
		if n == room {
			if block++; block > longestBlock {
				return false
			}
			more := reflect.New(p.blocks[block])
			reflect.Copy(more.Elem(), reflect.NewAt(p.blocks[block-1], first).Elem())
			first, room = more.UnsafePointer(), 1<<block
		}
		r.space()
		if !p.of.read(r, unsafe.Add(first, uintptr(n)*p.of.size), depth+1) {
			return false
		}
		n++
		if r.next(']') {
			break
		}
		if !r.next(',') {
			return false
		}
	}
	p.last.Store(int32(n)) // at most that of the longest block
	p.setList(v, first, n, room)
	return true
}

func (p *plan) setList(v, first unsafe.Pointer, n, room int) {
	*(*sliceHeader)(v) = sliceHeader{first, n, room}
}

func (p *plan) readMap(r *reader, v unsafe.Pointer) bool {
	if !r.next('{') {
		return false
	}
	var texts map[string]string
	var quantities map[string]resource.Quantity
	var binaries map[string][]byte
	switch p.kind {
	case KindTexts:
		texts = map[string]string{}
		*(*map[string]string)(v) = texts
	case KindQuantities:
		quantities = map[string]resource.Quantity{}
		*(*map[string]resource.Quantity)(v) = quantities
	default:
		binaries = map[string][]byte{}
		*(*map[string][]byte)(v) = binaries
	}
	if r.next('}') {
		return true
	}
	for n := 1; ; n++ {
		r.space()
		key, ok := r.text()
		if !ok || !r.next(':') {
			return false
		}
		r.space()
		switch p.kind {
		case KindTexts:
			texts[key], ok = r.text()
		case KindQuantities:
			var amount resource.Quantity
			ok = r.quantity(&amount)
			quantities[key] = amount
		default:
			binaries[key], ok = r.octets()
		}
		if !ok || len(texts)+len(quantities)+len(binaries) != n {
			return false // or a duplicate key
		}
		if r.next('}') {
			return true
		}
		if !r.next(',') {
			return false
		}
	}
}
