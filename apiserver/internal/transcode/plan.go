// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package transcode

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shape is how a value is written.
type shape uint8

const (
	shapeMessage shape = iota
	shapeText
	shapeInt32
	shapeInt64
	shapeBool
	shapeBytes // base64 in JSON
	shapeTime
	shapeQuantity
	shapeIntOrString
	shapeRaw     // raw JSON, in field 1
	shapeForeign // a json.Unmarshaler: decoded and marshalled
)

// field is a field of a message.
type field struct {
	name   string
	number int
	shape  shape
	// list and mapped are set for repeated fields; mapped ones have keys.
	list, mapped bool
	// tag is written before each value.
	tag []byte
	// absent is written if the JSON does not have the field; nil: nothing.
	absent  []byte
	message *message
	foreign reflect.Type
	// inner is set if the field is a message that JSON does not show: its fields are
	// among those of the enclosing message.
	inner *message
}

// message is how the fields of a struct are written.
type message struct {
	// fields are in the order of protobuf; ranked are the same with inner messages
	// replaced by their fields.
	fields []field
	ranked []*field
	// keys are those of the JSON, in the order in which Go writes them.
	keys []key
	// ordered is set if both orders are the same and no message is inner.
	ordered bool
}

// key is a key of an object in JSON. rank is its index in ranked; -1: protobuf does not
// have it.
type key struct {
	name string
	rank int
	text bool // a string that protobuf does not have
}

// marshaler is implemented by the generated types of Kubernetes.
type marshaler interface{ Marshal() ([]byte, error) }

// planner compiles the plans of a type and of its fields.
type planner struct{ messages map[reflect.Type]*message }

// plans caches the plans of types: reflect.Type -> *Plan, nil for those without one.
// The number of types is bounded and a result never changes.
var plans sync.Map

// Plan is how objects of a type are written. It is safe for concurrent use.
type Plan struct {
	root    *message
	writers sync.Pool
}

// Of returns the plan for the type of an object, a pointer to a struct. It is nil if
// some part of the type has no protobuf, or not the generated one.
func Of(object any) *Plan {
	t := reflect.TypeOf(object)
	if known, ok := plans.Load(t); ok {
		return known.(*Plan)
	}
	var plan *Plan
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t.Implements(reflect.TypeFor[marshaler]()) {
		p := planner{map[reflect.Type]*message{}}
		// A type with a Marshal of its own is recognised by the bytes of its empty
		// value.
		empty, err := reflect.New(t.Elem()).Interface().(marshaler).Marshal()
		if root, ok := p.message(t.Elem()); ok && err == nil && bytes.Equal(root.absent(), empty) {
			plan = &Plan{root: root}
			plan.writers.New = func() any { return &writer{} }
		}
	}
	known, _ := plans.LoadOrStore(t, plan)
	return known.(*Plan)
}

func (p *planner) message(t reflect.Type) (*message, bool) {
	if m := p.messages[t]; m != nil {
		return m, true
	}
	m := &message{}
	p.messages[t] = m
	type shown struct {
		name          string
		number, inner int // inner is 0 or the number of the field in the inner message
		text          bool
	}
	var keys []shown
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			return nil, false
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		number, tagged := fieldNumber(f)
		switch {
		case f.Anonymous && name == "" && !tagged: // TypeMeta, which the envelope contains
			for j := range f.Type.NumField() {
				name, _, _ := strings.Cut(f.Type.Field(j).Tag.Get("json"), ",")
				keys = append(keys, shown{name: name, text: f.Type.Field(j).Type.Kind() == reflect.String})
			}
			continue
		case f.Anonymous && name == "":
			inner, ok := p.inner(f.Type)
			if !ok {
				return nil, false
			}
			for _, k := range inner.keys {
				if k.rank < 0 {
					return nil, false
				}
				keys = append(keys, shown{name: k.name, number: number, inner: inner.ranked[k.rank].number})
			}
			of := field{number: number, tag: tagOf(number, 2), inner: inner}
			of.absent = lengthened(of.tag, inner.absent())
			m.fields = append(m.fields, of)
			continue
		case name == "" || name == "-":
			return nil, false
		case !tagged:
			keys = append(keys, shown{name: name, text: f.Type.Kind() == reflect.String})
			continue
		}
		of, ok := p.field(f.Type, number)
		if !ok {
			return nil, false
		}
		of.name = name
		keys = append(keys, shown{name: name, number: number})
		m.fields = append(m.fields, of)
	}
	slices.SortFunc(m.fields, func(a, b field) int { return a.number - b.number })
	ranks := map[[2]int]int{}
	for i := range m.fields {
		f := &m.fields[i]
		if f.inner == nil {
			ranks[[2]int{f.number, 0}] = len(m.ranked)
			m.ranked = append(m.ranked, f)
			continue
		}
		for _, of := range f.inner.ranked {
			ranks[[2]int{f.number, of.number}] = len(m.ranked)
			m.ranked = append(m.ranked, of)
		}
	}
	m.ordered = len(m.ranked) == len(m.fields)
	last := -1
	for _, k := range keys {
		rank := -1
		if k.number > 0 {
			rank = ranks[[2]int{k.number, k.inner}]
			m.ordered = m.ordered && rank > last
			last = rank
		}
		m.keys = append(m.keys, key{k.name, rank, k.text})
	}
	for i := range m.fields {
		m.ordered = m.ordered && m.fields[i].inner == nil
	}
	return m, true
}

// inner returns the message of an embedded struct; false if that embeds others.
func (p *planner) inner(t reflect.Type) (*message, bool) {
	if t.Kind() != reflect.Struct || reads(t) {
		return nil, false
	}
	m, ok := p.message(t)
	if !ok {
		return nil, false
	}
	for i := range m.fields {
		if m.fields[i].inner != nil {
			return nil, false
		}
	}
	return m, true
}

// absent returns the bytes of a message without fields in the JSON.
func (m *message) absent() (out []byte) {
	for i := range m.fields {
		out = append(out, m.fields[i].absent...)
	}
	return out
}

// field compiles a field of a type.
func (p *planner) field(t reflect.Type, number int) (field, bool) {
	f := field{number: number}
	optional := false
	switch {
	case t.Kind() == reflect.Pointer:
		t, optional = t.Elem(), true
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
			return f, false
		}
	case reads(t):
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !marshals(t):
		t, f.list, optional = t.Elem(), true, true
	case t.Kind() == reflect.Map && !marshals(t):
		if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return f, false
		}
		t, f.mapped, optional = t.Elem(), true, true
	}
	empty, ok := p.value(&f, t)
	if !ok {
		return f, false
	}
	if !optional {
		f.absent = empty
	}
	return f, true
}

// value compiles one value, and returns the bytes of an empty one.
func (p *planner) value(f *field, t reflect.Type) (empty []byte, ok bool) {
	number := f.number
	if f.mapped {
		number = 2 // of the map entry, whose tag comes before
	}
	varint, length := tagOf(number, 0), tagOf(number, 2)
	f.tag = length
	switch t {
	case reflect.TypeFor[metav1.Time]():
		f.shape = shapeTime
		return lengthened(length, nil), true
	case reflect.TypeFor[resource.Quantity]():
		f.shape = shapeQuantity
		return lengthened(length, lengthened(tagOf(1, 2), []byte("0"))), true
	case reflect.TypeFor[intstr.IntOrString]():
		f.shape = shapeIntOrString
		return lengthened(length, appendIntOrString(nil, 0, 0, nil)), true
	case reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension]():
		f.shape = shapeRaw
		return lengthened(length, nil), true
	}
	switch {
	case reads(t) || marshals(t) && t.Kind() != reflect.Struct:
		zero, ok := reflect.New(t).Interface().(marshaler)
		if !ok {
			return nil, false
		}
		f.shape, f.foreign = shapeForeign, t
		raw, err := zero.Marshal()
		if err != nil {
			return nil, false
		}
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			return nil, !f.list // nil is not written
		}
		return lengthened(length, raw), true
	case t.Kind() == reflect.String:
		f.shape = shapeText
		return lengthened(length, nil), true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		f.shape = shapeBytes
		return nil, !f.list
	case t.Kind() == reflect.Struct && marshals(t):
		f.shape = shapeMessage
		m, ok := p.message(t)
		if !ok {
			return nil, false
		}
		f.message = m
		zero, err := reflect.New(t).Interface().(marshaler).Marshal()
		return lengthened(length, zero), err == nil
	}
	f.tag = varint
	switch t.Kind() {
	case reflect.Bool:
		f.shape = shapeBool
	case reflect.Int32:
		f.shape = shapeInt32
	case reflect.Int64:
		f.shape = shapeInt64
	default:
		return nil, false
	}
	return append(slices.Clone(varint), 0), true
}

// reads reports whether a type is a json.Unmarshaler.
func reads(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func marshals(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[marshaler]())
}

// fieldNumber returns the protobuf number of a field.
func fieldNumber(f reflect.StructField) (int, bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil && n > 0
}

// tagOf returns the tag of a field with a wire type.
func tagOf(number, wireType int) []byte {
	return binary.AppendUvarint(nil, uint64(number)<<3|uint64(wireType))
}

func lengthened(tag, content []byte) []byte {
	out := binary.AppendUvarint(slices.Clone(tag), uint64(len(content)))
	return append(out, content...)
}
