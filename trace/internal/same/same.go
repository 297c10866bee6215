// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package same tells quickly whether two objects are the same. Most comparisons
// of an operator end with yes: after a reconcile that changed nothing. They are
// made in the memory of the values, by a layout that is worked out once per Go
// type; who wants to know what differs looks for it afterwards.
//
// "Not the same" may be wrong, where one thing has several forms (an empty and a
// missing list, two zones of one moment); "the same" never is.
package same

import (
	"maps"
	"reflect"
	"strings"
	"sync"
	"unsafe"
)

// layouts are by type, and by the field that is left out.
var layouts sync.Map // layoutKey to *layout

type layoutKey struct {
	of      reflect.Type
	without string
}

// Structs compares two pointers to structs of one type. The field of the struct
// whose JSON name is without is left out.
func Structs(a, b any, without string) bool {
	p, q := reflect.ValueOf(a), reflect.ValueOf(b)
	if p.Kind() != reflect.Pointer || q.Kind() != reflect.Pointer || p.Type() != q.Type() {
		return false
	}
	if p.Type().Elem().Kind() != reflect.Struct || p.IsNil() || q.IsNil() {
		return false
	}
	if p.UnsafePointer() == q.UnsafePointer() {
		return true
	}
	key := layoutKey{p.Type().Elem(), without}
	found, ok := layouts.Load(key)
	if !ok {
		found, _ = layouts.LoadOrStore(key, layoutOf(key))
	}
	return found.(*layout).equal(p.UnsafePointer(), q.UnsafePointer())
}

// layout is what a type looks like in memory.
type layout struct {
	size uintptr
	ops  []op
	// flat values are their memory and nothing else.
	flat bool
}

// op compares one part of a value.
type op struct {
	kind opKind
	at   uintptr
	size uintptr      // of memory
	of   *layout      // of what a pointer or slice leads to
	as   reflect.Type // of anything else
}

type opKind uint8

const (
	memory opKind = iota
	text
	pointer
	slice
	texts // map[string]string
	anything
)

func (l *layout) equal(a, b unsafe.Pointer) bool {
	for i := range l.ops {
		if o := &l.ops[i]; !o.equal(unsafe.Add(a, o.at), unsafe.Add(b, o.at)) {
			return false
		}
	}
	return true
}

func (o *op) equal(a, b unsafe.Pointer) bool {
	switch o.kind {
	case memory:
		return unsafe.String((*byte)(a), o.size) == unsafe.String((*byte)(b), o.size)
	case text:
		return *(*string)(a) == *(*string)(b)
	case pointer:
		x, y := *(*unsafe.Pointer)(a), *(*unsafe.Pointer)(b)
		return x == y || x != nil && y != nil && o.of.equal(x, y)
	case slice:
		// The header of a slice is the same whatever its elements are.
		x, y := *(*[]byte)(a), *(*[]byte)(b)
		if len(x) != len(y) {
			return false
		}
		return len(x) == 0 || o.of.elements(unsafe.Pointer(unsafe.SliceData(x)), unsafe.Pointer(unsafe.SliceData(y)), uintptr(len(x)))
	case texts:
		return maps.Equal(*(*map[string]string)(a), *(*map[string]string)(b))
	}
	return reflect.DeepEqual(reflect.NewAt(o.as, a).Elem().Interface(), reflect.NewAt(o.as, b).Elem().Interface())
}

// elements compares n values that lie one after the other.
func (l *layout) elements(a, b unsafe.Pointer, n uintptr) bool {
	if a == b {
		return true
	}
	if l.flat {
		return unsafe.String((*byte)(a), n*l.size) == unsafe.String((*byte)(b), n*l.size)
	}
	for i := range n {
		if !l.equal(unsafe.Add(a, i*l.size), unsafe.Add(b, i*l.size)) {
			return false
		}
	}
	return true
}

func layoutOf(key layoutKey) *layout {
	c := compiler{}
	out := &layout{size: key.of.Size()}
	for i := range key.of.NumField() {
		f := key.of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key.without == "" || name != key.without {
			c.add(out, f.Offset, f.Type)
		}
	}
	return out
}

// compiler knows the layouts of the types that it has met: types contain
// themselves.
type compiler map[reflect.Type]*layout

func (c compiler) layout(t reflect.Type) *layout {
	if l := c[t]; l != nil {
		return l
	}
	l := &layout{size: t.Size()}
	c[t] = l
	c.add(l, 0, t)
	l.flat = t.Size() == 0 || len(l.ops) == 1 && l.ops[0].kind == memory && l.ops[0].size == t.Size()
	return l
}

// add appends what it takes to compare a value of type t at an offset of l.
func (c compiler) add(l *layout, at uintptr, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			c.add(l, at+f.Offset, f.Type)
		}
	case reflect.Array:
		for i := range uintptr(t.Len()) {
			c.add(l, at+i*t.Elem().Size(), t.Elem())
		}
	case reflect.String:
		l.ops = append(l.ops, op{kind: text, at: at})
	case reflect.Pointer:
		l.ops = append(l.ops, op{kind: pointer, at: at, of: c.layout(t.Elem())})
	case reflect.Slice:
		l.ops = append(l.ops, op{kind: slice, at: at, of: c.layout(t.Elem())})
	case reflect.Map:
		if t.Key() == reflect.TypeFor[string]() && t.Elem() == reflect.TypeFor[string]() {
			l.ops = append(l.ops, op{kind: texts, at: at})
			return
		}
		l.ops = append(l.ops, op{kind: anything, at: at, as: t})
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		l.ops = append(l.ops, op{kind: anything, at: at, as: t})
	default:
		// Neighbours without a gap are compared in one go.
		if last := len(l.ops) - 1; last >= 0 && l.ops[last].kind == memory && l.ops[last].at+l.ops[last].size == at {
			l.ops[last].size += t.Size()
			return
		}
		l.ops = append(l.ops, op{kind: memory, at: at, size: t.Size()})
	}
}
