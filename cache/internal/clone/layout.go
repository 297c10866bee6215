// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"math/bits"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// layout is what a type looks like in memory.
type layout struct {
	size uintptr
	// Values lie in blocks of this class; a value takes so many of its units.
	class int
	units int
	// leading are the parts that lead to what is counted, others the rest.
	leading []part
	others  []part
	// Of a map: its type, and the layout of its values.
	as     reflect.Type
	values *layout
}

// part is a place in a value. It is small, so that layouts stay in the processor's cache.
type part struct {
	kind partKind
	n    uint16  // of plain bytes or strings; of quantities: where an *inf.Dec is in one
	at   uint32  // in the value
	of   *layout // of what a pointer, a list or a mapping leads to
}

type partKind uint8

const (
	pointer partKind = iota
	list
	plain
	text
	moment // a metav1.Time; zones are for all
	quantity
	fieldSet // a metav1.FieldsV1 that is a string, as a build tag has it
	octets
	object     // a runtime.Object
	texts      // map[string]string, whatever its types are called
	quantities // the same of quantities
	mapping    // any other map
)

// Classes of values without pointers are the logarithms of their alignments; others follow.
const plainClasses = 4

// classes are the sorts of memory that the parts of one kind of object lie in: types
// with pointers at the same places have one, and all that consist of strings.
type classes struct {
	units  []reflect.Type // by class, after the plain ones
	byMask map[string]int
}

// textClass is the class of strings.
const textClass = plainClasses

// compiler works the layouts of a kind out; types contain themselves.
type compiler struct {
	classes
	layouts map[reflect.Type]*layout
}

func newCompiler() *compiler {
	return &compiler{
		classes: classes{units: []reflect.Type{reflect.TypeFor[string]()}, byMask: map[string]int{}},
		layouts: map[reflect.Type]*layout{},
	}
}

// layout is nil when only the type's own code knows how to copy its values.
func (c *compiler) layout(t reflect.Type) *layout {
	if l, known := c.layouts[t]; known {
		return l
	}
	l := &layout{size: t.Size()}
	c.layouts[t] = l
	if !c.add(l, 0, t) {
		c.layouts[t] = nil // what contains it has none either
		return nil
	}
	l.class, l.units = c.classOf(t)
	return l
}

// generated says that a struct is one whose DeepCopy is generated, or one of the few
// beside them that add knows.
func generated(t reflect.Type) bool {
	return t.Name() != "" && (strings.HasPrefix(t.PkgPath(), "k8s.io/api/") || strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/"))
}

// add appends what it takes to copy a value of type t at an offset of l.
func (c *compiler) add(l *layout, at uintptr, t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return l.append(part{kind: moment}, at)
	case reflect.TypeFor[resource.Quantity]():
		return l.append(part{kind: quantity}, at)
	case reflect.TypeFor[metav1.FieldsV1]():
		if !t.Field(0).IsExported() {
			return l.append(part{kind: fieldSet}, at)
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		if !generated(t) {
			return false
		}
		for i := range t.NumField() {
			if f := t.Field(i); !f.IsExported() || !c.add(l, at+f.Offset, f.Type) {
				return false
			}
		}
		return true
	case reflect.Pointer:
		return c.addPart(l, pointer, at, t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return l.append(part{kind: octets}, at)
		}
		return c.addPart(l, list, at, t)
	case reflect.Map:
		return c.addMap(l, at, t)
	case reflect.Interface:
		return t == reflect.TypeFor[runtime.Object]() && l.append(part{kind: object}, at)
	case reflect.String:
		if last := l.last(text); last != nil && uintptr(last.at)+uintptr(last.n)*t.Size() == at {
			last.n++
			return true
		}
		return l.append(part{kind: text, n: 1}, at)
	case reflect.Array, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return false
	}
	if last := l.last(plain); last != nil && at-uintptr(last.at)-uintptr(last.n) < word {
		last.n = uint16(at + t.Size() - uintptr(last.at)) // what may be between is padding
		return true
	}
	return l.append(part{kind: plain, n: uint16(t.Size())}, at)
}

// last is the part before the next if it is of the kind.
func (l *layout) last(kind partKind) *part {
	if n := len(l.others); n > 0 && l.others[n-1].kind == kind {
		return &l.others[n-1]
	}
	return nil
}

func (l *layout) append(p part, at uintptr) bool {
	p.at = uint32(at)
	if p.kind == pointer || p.kind == list {
		l.leading = append(l.leading, p)
	} else {
		l.others = append(l.others, p)
	}
	return true
}

func (c *compiler) addPart(l *layout, kind partKind, at uintptr, t reflect.Type) bool {
	of := c.layout(t.Elem())
	return of != nil && l.append(part{kind: kind, of: of}, at)
}

func (c *compiler) addMap(l *layout, at uintptr, t reflect.Type) bool {
	switch t.Key().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Array, reflect.Chan:
		return false
	case reflect.String:
		if t.Elem().Kind() == reflect.String {
			return l.append(part{kind: texts}, at)
		}
		if t.Elem() == reflect.TypeFor[resource.Quantity]() {
			d, ok := t.Elem().FieldByName("d")
			ok = ok && d.Type.Size() == word && d.Type.Kind() == reflect.Struct && d.Type.Field(0).Type.Kind() == reflect.Pointer
			return ok && l.append(part{kind: quantities, n: uint16(d.Offset)}, at)
		}
	}
	of := c.layout(t.Elem())
	return of != nil && l.append(part{kind: mapping, of: &layout{as: t, values: of}}, at)
}

const word = unsafe.Sizeof(uintptr(0))

// classOf finds the class of a type, and how many of its units a value takes.
func (c *compiler) classOf(t reflect.Type) (class, units int) {
	mask := make([]byte, (t.Size()+word-1)/word)
	for i := range mask {
		mask[i] = '.'
	}
	markPointers(mask, 0, t)
	m := string(mask)
	if !strings.Contains(m, "p") {
		return bits.Len(uint(t.Align())) - 1, int(t.Size())
	}
	if n := len(m) / 2; m == strings.Repeat("p.", n) {
		return textClass, n
	}
	class, known := c.byMask[m]
	if !known {
		class = plainClasses + len(c.units)
		c.byMask[m] = class
		c.units = append(c.units, t)
	}
	return class, 1
}

// markPointers marks the words of a value that are pointers.
func markPointers(mask []byte, at uintptr, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.String, reflect.Slice, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		mask[at/word] = 'p'
	case reflect.Interface:
		mask[at/word], mask[at/word+1] = 'p', 'p'
	case reflect.Struct:
		for i := range t.NumField() {
			markPointers(mask, at+t.Field(i).Offset, t.Field(i).Type)
		}
	case reflect.Array:
		for i := range uintptr(t.Len()) {
			markPointers(mask, at+i*t.Elem().Size(), t.Elem())
		}
	}
}
