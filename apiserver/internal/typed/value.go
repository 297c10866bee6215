// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Type tells how values of a Go type are found in memory. Types of one [Plan] are equal if
// their Go types are.
type Type struct{ plan *plan }

// Type returns that of the struct.
func (p *Plan) Type() Type { return Type{p.root} }

// Go returns the Go type.
func (t Type) Go() reflect.Type { return t.plan.typ }

// Kind returns how values are written.
func (t Type) Kind() Kind { return t.plan.kind }

// Elem returns the type that a pointer leads to, or of the elements of a list.
func (t Type) Elem() Type { return Type{t.plan.of} }

// Field returns a field of a struct by its name in JSON.
func (t Type) Field(name string) (Field, bool) {
	i, ok := t.plan.byName[name]
	if !ok {
		return Field{}, false
	}
	return Field{&t.plan.fields[i]}, true
}

// Field is one of a struct.
type Field struct{ field *field }

// Type returns the type of the values of the field.
func (f Field) Type() Type { return Type{f.field.plan} }

// Of returns the field of a struct.
func (f Field) Of(v Value) Value { return Value{f.field.plan, unsafe.Add(v.at, f.field.offset)} }

// Value is a value in memory, valid as long as the object that it is of. Which of its methods
// may be called is told by its kind.
type Value struct {
	plan *plan
	at   unsafe.Pointer
}

// Value returns the struct that an object of the plan's type points to.
func (p *Plan) Value(object any) Value { return Value{p.root, reflect.ValueOf(object).UnsafePointer()} }

// IsNil reports whether a pointer, list or map, or bytes, are nil.
func (v Value) IsNil() bool { return isNil(v.at) }

// IsZero reports whether a value of any kind is all zeros in memory: an empty string need not
// be, nor a zero time.
func (v Value) IsZero() bool {
	memory := unsafe.String((*byte)(v.at), v.plan.size)
	for len(memory) > len(zeros) && memory[:len(zeros)] == zeros {
		memory = memory[len(zeros):]
	}
	return len(memory) <= len(zeros) && memory == zeros[:len(memory)]
}

// zeros is compared with values piece by piece.
const zeros = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// Empty reports whether a value of any kind has no elements, is no time, or is all zeros.
func (v Value) Empty() bool {
	switch v.plan.kind {
	case KindText, KindOctets, KindList, KindTexts, KindQuantities, KindBinaries:
		return v.Len() == 0
	case KindPointer:
		return v.IsNil()
	case KindTime, KindMicroTime:
		return v.isZeroTime()
	default:
		return v.IsZero()
	}
}

// isZeroTime reports whether a value of any kind is a time, and none.
func (v Value) isZeroTime() bool {
	switch v.plan.kind {
	case KindTime:
		return (*metav1.Time)(v.at).IsZero()
	case KindMicroTime:
		return (*metav1.MicroTime)(v.at).IsZero()
	}
	return false
}

// Len returns the length of a string, a list, a map or bytes.
func (v Value) Len() int {
	switch v.plan.kind {
	case KindText:
		return len(v.Text())
	case KindTexts, KindQuantities, KindBinaries:
		return len(*(*map[string]string)(v.at)) // the length of a map of any type
	}
	return (*sliceHeader)(v.at).n
}

// Text returns a string.
func (v Value) Text() string { return *(*string)(v.at) }

// Int returns an integer of any size.
func (v Value) Int() int64 {
	switch v.plan.size {
	case 1:
		return int64(*(*int8)(v.at))
	case 2:
		return int64(*(*int16)(v.at))
	case 4:
		return int64(*(*int32)(v.at))
	}
	return *(*int64)(v.at)
}

// IntOrString returns one.
func (v Value) IntOrString() *intstr.IntOrString { return (*intstr.IntOrString)(v.at) }

// Elem returns what a pointer leads to.
func (v Value) Elem() Value { return Value{v.plan.of, *(*unsafe.Pointer)(v.at)} }

// Index returns an element of a list.
func (v Value) Index(i int) Value {
	return Value{v.plan.of, unsafe.Add((*sliceHeader)(v.at).first, uintptr(i)*v.plan.of.size)}
}

// AppendKeys appends the keys of a map, in any order.
func (v Value) AppendKeys(keys []string) []string {
	switch v.plan.kind {
	case KindTexts:
		for key := range *(*map[string]string)(v.at) {
			keys = append(keys, key)
		}
	case KindQuantities:
		for key := range *(*map[string]resource.Quantity)(v.at) {
			keys = append(keys, key)
		}
	case KindBinaries:
		for key := range v.Binaries() {
			keys = append(keys, key)
		}
	}
	return keys
}

// Binaries returns a map of bytes.
func (v Value) Binaries() map[string][]byte { return *(*map[string][]byte)(v.at) }

// sliceHeader is how a slice of any type lies in memory.
type sliceHeader struct {
	first  unsafe.Pointer
	n, cap int
}

func isNil(v unsafe.Pointer) bool { return *(*unsafe.Pointer)(v) == nil }
