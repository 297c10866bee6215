// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	jsonv1 "github.com/go-json-experiment/json/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/internal/jsontext"
)

// Write returns an object of the plan's type as encoding/json encodes it. lossless reports
// that decoding the JSON gives an object with the same protobuf: JSON omits empty but
// non-nil strings, bytes, pointers to zero times and the like, which protobuf has. It
// may be false although that holds.
//
//steer:fast typed
func (p *Plan) Write(object any) (out []byte, lossless bool, err error) {
	w := writer{}
	out, err = p.write(&w, object)
	return out, !w.lossy, err
}

// WriteSorted is [Plan.Write] with the fields in the order of their names. canonical reports
// that the text is canonical: it may be so although that is false.
func (p *Plan) WriteSorted(object any) (out []byte, canonical bool, err error) {
	w := writer{sorted: true}
	out, err = p.write(&w, object)
	return out, !w.verbatim, err
}

func (p *Plan) write(w *writer, object any) ([]byte, error) {
	out, err := p.root.append(w, make([]byte, 0, p.size.Load()*9/8+64), reflect.ValueOf(object).UnsafePointer())
	if err != nil {
		return nil, err
	}
	size := p.size.Load()
	p.size.Store(max(int64(len(out)), size-size/16)) // small objects are written between large ones
	return out, nil
}

// writer collects properties of an object while it is encoded.
type writer struct {
	lossy    bool
	sorted   bool // the fields are in the order of their names
	verbatim bool // a part was written by a library
}

const null = "null"

func (p *plan) append(w *writer, out []byte, v unsafe.Pointer) ([]byte, error) {
	switch p.kind {
	case KindText:
		return w.text(out, *(*string)(v))
	case KindBool:
		return strconv.AppendBool(out, *(*bool)(v)), nil
	case KindInt:
		return strconv.AppendInt(out, Value{p, v}.Int(), 10), nil
	case KindStruct:
		return p.appendStruct(w, out, v)
	case KindTime:
		if at := (*metav1.Time)(v); !at.IsZero() {
			return append(at.UTC().AppendFormat(append(out, '"'), time.RFC3339), '"'), nil
		}
		return append(out, null...), nil
	case KindMicroTime:
		if at := (*metav1.MicroTime)(v); !at.IsZero() {
			return append(at.UTC().AppendFormat(append(out, '"'), metav1.RFC3339Micro), '"'), nil
		}
		return append(out, null...), nil
	case KindQuantity:
		return appendQuantity(out, (*resource.Quantity)(v)), nil
	case KindIntOrString:
		switch value := (*intstr.IntOrString)(v); value.Type {
		case intstr.Int:
			w.lossy = w.lossy || value.StrVal != ""
			return strconv.AppendInt(out, int64(value.IntVal), 10), nil
		case intstr.String:
			w.lossy = w.lossy || value.IntVal != 0
			return w.text(out, value.StrVal)
		}
	case KindFields:
		if raw := (*metav1.FieldsV1)(v).GetRawBytes(); len(raw) > 0 && raw[0] == '{' && compact(raw) {
			w.verbatim = true
			return append(out, raw...), nil
		}
	case KindPointer:
		if isNil(v) {
			return append(out, null...), nil
		}
		to := *(*unsafe.Pointer)(v)
		w.lossy = w.lossy || Value{p.of, to}.isZeroTime()
		return p.of.append(w, out, to)
	case KindOctets:
		if isNil(v) {
			return append(out, null...), nil
		}
		return appendOctets(out, *(*[]byte)(v)), nil
	case KindList:
		return p.appendList(w, out, v)
	case KindTexts, KindQuantities, KindBinaries:
		return p.appendMap(w, out, v)
	}
	return p.appendForeign(w, out, v)
}

// appendForeign encodes a value with the type's own MarshalJSON.
func (p *plan) appendForeign(w *writer, out []byte, v unsafe.Pointer) ([]byte, error) {
	w.lossy, w.verbatim = true, true // not checked
	raw, err := jsonv1.Marshal(reflect.NewAt(p.typ, v).Interface())
	return append(out, raw...), err
}

// omitted reports whether a field is omitted.
func (f *field) omitted(v unsafe.Pointer) bool {
	if f.plan.kind != KindForeign {
		return Value{f.plan, v}.Empty()
	}
	value := reflect.NewAt(f.plan.typ, v).Elem()
	if value.Kind() == reflect.Interface {
		return value.IsNil()
	}
	return value.Len() == 0
}

func (p *plan) appendStruct(w *writer, out []byte, v unsafe.Pointer) (_ []byte, err error) {
	w.lossy = w.lossy || p.hides
	out = append(out, '{')
	for i := range p.fields {
		f := &p.fields[i]
		if w.sorted {
			f = &p.fields[p.sorted[i]]
		}
		at := unsafe.Add(v, f.offset)
		if f.omit != never && f.omitted(at) {
			if f.plan.kind == KindOctets && !isNil(at) {
				w.lossy = true
			}
			continue
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		if out, err = f.plan.append(w, append(out, f.label...), at); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func (p *plan) appendList(w *writer, out []byte, v unsafe.Pointer) (_ []byte, err error) {
	if isNil(v) {
		return append(out, null...), nil
	}
	header := (*sliceHeader)(v)
	out = append(out, '[')
	for i := range header.n {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = p.of.append(w, out, unsafe.Add(header.first, uintptr(i)*p.of.size)); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

// appendMap encodes a map with sorted keys.
func (p *plan) appendMap(w *writer, out []byte, v unsafe.Pointer) (_ []byte, err error) {
	if isNil(v) {
		return append(out, null...), nil
	}
	var few [16]string
	keys := Value{p, v}.AppendKeys(few[:0])
	for _, key := range keys {
		if !jsontext.PlainText(key) {
			return p.appendForeign(w, out, v)
		}
	}
	slices.Sort(keys)
	out = append(out, '{')
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), key...), `":`...)
		switch p.kind {
		case KindTexts:
			out, err = w.text(out, (*(*map[string]string)(v))[key])
		case KindQuantities:
			amount := (*(*map[string]resource.Quantity)(v))[key]
			out = appendQuantity(out, &amount)
		default:
			if octets := (*(*map[string][]byte)(v))[key]; octets == nil {
				out = append(out, null...)
			} else {
				out = appendOctets(out, octets)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// text appends a string; the library escapes it if needed.
func (w *writer) text(out []byte, text string) ([]byte, error) {
	if !jsontext.PlainText(text) {
		w.lossy, w.verbatim = w.lossy || !utf8.ValidString(text), true
		raw, err := jsonv1.Marshal(text)
		return append(out, raw...), err
	}
	return append(append(append(out, '"'), text...), '"'), nil
}

// appendQuantity appends a quantity in its canonical form, which has nothing to escape.
func appendQuantity(out []byte, amount *resource.Quantity) []byte {
	out = append(out, '"')
	number, suffix := amount.CanonicalizeBytes(out[len(out):])
	return append(append(append(out, number...), suffix...), '"')
}

func appendOctets(out, octets []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(out, '"'), octets), '"')
}

// compact reports whether raw JSON is valid, without white space and without characters
// that encoding/json would escape.
func compact(raw []byte) bool {
	end := skipCompact(raw, 0, 0)
	return end == len(raw)
}
