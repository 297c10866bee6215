// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"math"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan says how a struct is read.
type plan struct{ fields []field } // by number

// maxNumber is the largest number of a field that plans are made for.
const maxNumber = 255

// field is a field of a struct that travels.
type field struct {
	known    bool
	dropped  bool
	index    int // in the struct
	typ      reflect.Type
	wire     int
	repeated bool
	pointer  bool // of the field, or of the elements of the list
	value    value
	key      *field // of a map: the texts that are its keys
	planned  bool
	plan     *plan // of a nested value, once planned; nil if it reads itself

	texts, parts luck
	// The pointer to a number that was made last.
	lastNumber  uint64
	lastPointer reflect.Value
}

// form is what a value is.
type form uint8

const (
	text   form = iota + 1 // a string
	octets                 // a []byte
	nested                 // a message, or what reads itself
	signed
	unsigned
	boolean
	double
)

// value is the type of a single value: of a field, a list's element, or what a
// map holds.
type value struct {
	typ  reflect.Type
	form form
}

var (
	typeMeta        = reflect.TypeFor[metav1.TypeMeta]()
	managedFields   = reflect.TypeFor[[]metav1.ManagedFieldsEntry]()
	stringMap       = reflect.TypeFor[map[string]string]()
	unmarshalerType = reflect.TypeFor[unmarshaler]()
)

func (p *plan) field(number int) *field {
	if number >= len(p.fields) || !p.fields[number].known {
		return nil
	}
	return &p.fields[number]
}

// planOf is the plan of a struct, or nil if it has to read itself: its tags do
// not say all that there is to it.
func (d *Decoder) planOf(t reflect.Type) *plan {
	if p, known := d.plans[t]; known {
		return p
	}
	p := d.makePlan(t)
	d.plans[t] = p
	return p
}

func (d *Decoder) makePlan(t reflect.Type) *plan {
	if t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(unmarshalerType) {
		return nil
	}
	p := &plan{}
	for i := range t.NumField() {
		structField := t.Field(i)
		spec, tagged := structField.Tag.Lookup("protobuf")
		if !tagged && structField.Type == typeMeta {
			continue // does not travel
		}
		number, f, ok := fieldOf(structField.Type, spec)
		if !ok || !structField.IsExported() {
			return nil
		}
		f.index = i
		f.dropped = d.opts.DropManagedFields && f.typ == managedFields
		if missing := number + 1 - len(p.fields); missing > 0 {
			p.fields = append(p.fields, make([]field, missing)...)
		}
		p.fields[number] = f
	}
	return p
}

// fieldOf makes a field of its type and tag. Of the tag, which begins with the
// encoding, the number, and opt or rep, only the number counts: Unmarshal is
// generated from the type, and the rest of some tags is out of date.
func fieldOf(t reflect.Type, spec string) (number int, f field, ok bool) {
	parts := strings.Split(spec, ",")
	if len(parts) < 3 {
		return 0, f, false
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil || number < 1 || number > maxNumber {
		return 0, f, false
	}
	f = field{known: true, typ: t, wire: wireBytes}
	if f.value, ok = valueOf(t); !ok {
		switch t.Kind() {
		case reflect.Slice:
			f.repeated = true
		case reflect.Map:
			if t.Key().Kind() != reflect.String || t.Elem().Kind() == reflect.Pointer {
				return 0, f, false
			}
			f.repeated, f.key = true, &field{}
		case reflect.Pointer:
		default:
			return 0, f, false
		}
		if t.Kind() != reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Pointer {
			f.pointer = true
			t = t.Elem()
		}
		f.value, ok = valueOf(t)
	}
	switch f.value.form {
	case signed, unsigned, boolean:
		f.wire = wireVarint
	case double:
		f.wire = wireFixed64
	}
	return number, f, ok && (f.key == nil || f.wire == wireBytes)
}

// valueOf is what a type is as a single value, if it is one.
func valueOf(t reflect.Type) (value, bool) {
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		return value{t, nested}, true
	}
	switch t.Kind() {
	case reflect.String:
		return value{t, text}, true
	case reflect.Slice:
		return value{t, octets}, t.Elem().Kind() == reflect.Uint8
	case reflect.Bool:
		return value{t, boolean}, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return value{t, signed}, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return value{t, unsigned}, true
	case reflect.Float64:
		return value{t, double}, true
	}
	return value{}, false
}

// setNumber makes v the number as it travels; what is too large loses its upper
// bits, as it does elsewhere.
func (k *value) setNumber(v reflect.Value, number uint64) {
	switch k.form {
	case boolean:
		v.SetBool(number != 0)
	case unsigned:
		v.SetUint(number)
	case double:
		v.SetFloat(math.Float64frombits(number))
	default:
		v.SetInt(int64(number))
	}
}
