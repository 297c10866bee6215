// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package creation computes which fields of a new object of a Go type its creator owns, in one
// pass over the memory of the object.
package creation

import (
	"reflect"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/internal/jsontext"
)

// Creation computes the managedFields set of new objects of a Go type in one pass over
// the object: the result of [fields.Compare] with an empty object, without the fields
// that the endpoint resets, after [fields.Tree.Gains]. It is safe for concurrent use.
type Creation struct {
	Type reflect.Type
	root *plan
	// texts are *[]byte, the buffers for sets.
	texts sync.Pool
}

// New compiles a Go type, which must be a struct; nil if only [fields.Compare]
// supports it. resets are the fields that no manager owns.
func New(n *fields.Type, t reflect.Type, resets *fields.Tree) *Creation {
	if n == nil || t.Kind() != reflect.Struct ||
		t.NumField() == 0 || t.Field(0).Type != reflect.TypeFor[metav1.TypeMeta]() {
		return nil
	}
	if objects, atomic := n.Objects(); !objects || atomic {
		return nil
	}
	root := (&planner{known: map[planKey]*plan{}}).root(n, t, resets)
	if root == nil {
		return nil
	}
	return &Creation{Type: t, root: root, texts: sync.Pool{New: func() any { return new([]byte) }}}
}

// Fresh reports whether the object of the type that v points to has only a kind.
func (c *Creation) Fresh(v unsafe.Pointer) bool {
	const kind = unsafe.Sizeof(metav1.TypeMeta{})
	return zero(unsafe.Add(v, kind), c.root.size-kind)
}

// Of returns the set of an object of the type, which v points to; nil if no manager
// owns any of its fields. false means that [fields.Compare] must be used.
//
//steer:fast creation
func (c *Creation) Of(v unsafe.Pointer) (*metav1.FieldsV1, bool) {
	buffer := c.texts.Get().(*[]byte)
	defer c.texts.Put(buffer)
	out, ok := c.root.differing((*buffer)[:0], v)
	*buffer = out
	if !ok || len(out) == len(leaf) {
		return nil, ok
	}
	set := &metav1.FieldsV1{}
	set.SetRawBytes(out)
	return set, true
}

// sliceHeader is the memory layout of a slice.
type sliceHeader struct {
	first unsafe.Pointer
	n     int
}

// sizeOfMap is the length of a map of any type.
func sizeOfMap(v unsafe.Pointer) int { return len(*(*map[string]string)(v)) }

// isNil reports whether a pointer, slice or map is nil.
func isNil(v unsafe.Pointer) bool { return *(*unsafe.Pointer)(v) == nil }

// zero reports whether a value is all zeros in memory.
func zero(v unsafe.Pointer, size uintptr) bool {
	memory := unsafe.String((*byte)(v), size)
	for len(memory) > len(zeros) && memory[:len(zeros)] == zeros {
		memory = memory[len(zeros):]
	}
	return len(memory) <= len(zeros) && memory == zeros[:len(memory)]
}

// zeros is compared with values piece by piece.
const zeros = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// timeless reports whether a time is zero.
func (p *plan) timeless(v unsafe.Pointer) bool {
	if p.kind == planMicroTime {
		return (*metav1.MicroTime)(v).IsZero()
	}
	return (*metav1.Time)(v).IsZero()
}

// empty reports whether omitempty omits a value.
func (p *plan) empty(v unsafe.Pointer) bool {
	switch p.kind {
	case planText, planBytes, planList: // a string has its length at the same offset
		return (*sliceHeader)(v).n == 0
	case planTexts, planQuantities, planOctets:
		return sizeOfMap(v) == 0
	case planPointer:
		return isNil(v)
	case planTime, planMicroTime:
		return p.timeless(v)
	default:
		return zero(v, p.size)
	}
}

const leaf = "{}"

// differing writes the fields of a struct that differ from an empty one.
func (p *plan) differing(out []byte, v unsafe.Pointer) ([]byte, bool) {
	out = append(out, '{')
	for i := range p.fields {
		f := &p.fields[i]
		at := unsafe.Add(v, f.offset)
		if f.omits && f.plan.empty(at) || !f.omits && zero(at, f.plan.size) {
			continue
		}
		before := len(out)
		out = appendLabel(out, f.label)
		beginning := len(out)
		var ok bool
		switch {
		case f.omits:
			out, ok = f.plan.write(out, at, true)
		case f.plan.kind == planStruct && !f.plan.whole:
			out, ok = f.plan.differing(out, at)
			if ok && len(out)-beginning == len(leaf) {
				out = out[:before] // no field differs
				continue
			}
		default:
			out, ok = f.plan.replace(out, at)
			if ok && len(out) == beginning {
				out = out[:before]
				continue
			}
		}
		if !ok {
			return out, false
		}
		if f.unowned {
			out = out[:before]
		}
	}
	return append(out, '}'), true
}

// appendLabel begins a member.
func appendLabel(out []byte, label string) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(out, label...)
}

// replace writes the set below a field that is always encoded and is not all zeros in
// memory; nothing if its JSON is that of the zero value.
func (p *plan) replace(out []byte, v unsafe.Pointer) ([]byte, bool) {
	switch p.kind {
	case planText, planBool, planInt:
		if p.kind == planText && p.empty(v) { // a string that is empty but points into a document
			return out, true
		}
		return append(out, leaf...), p.holds
	case planTime, planMicroTime:
		if p.timeless(v) {
			return out, true
		}
		return append(out, leaf...), p.holds && p.nullable
	case planStruct:
		same, ok := p.blank(v)
		if same || !ok {
			return out, ok
		}
		return append(out, leaf...), p.blankFits() && p.fits(v)
	case planPointer, planBytes, planList, planTexts, planQuantities, planOctets:
		if isNil(v) {
			return out, true
		}
		if !p.nullable {
			return out, false
		}
		return p.write(out, v, false)
	}
	return out, false
}

// blank reports whether a struct has the JSON of an empty one; ok is false if that is
// not certain.
func (p *plan) blank(v unsafe.Pointer) (same, ok bool) {
	for i := range p.fields {
		f := &p.fields[i]
		at := unsafe.Add(v, f.offset)
		if f.omits && f.plan.empty(at) || !f.omits && zero(at, f.plan.size) {
			continue
		}
		if f.omits {
			return false, f.plan.kind != planUnknown
		}
		switch f.plan.kind {
		case planText:
			if !f.plan.empty(at) {
				return false, true
			}
		case planBool, planInt, planPointer, planBytes, planList, planTexts, planQuantities, planOctets:
			return false, true
		case planTime, planMicroTime:
			if !f.plan.timeless(at) {
				return false, true
			}
		case planStruct:
			if same, ok := f.plan.blank(at); !same {
				return false, ok
			}
		default:
			return false, false
		}
	}
	return true, true
}

// blankFits is fits for an empty struct.
func (p *plan) blankFits() bool {
	for i := range p.fields {
		f := &p.fields[i]
		if f.omits {
			continue
		}
		switch f.plan.kind {
		case planText, planBool, planInt:
			if !f.plan.holds {
				return false
			}
		case planStruct:
			if !f.plan.object || !f.plan.blankFits() {
				return false
			}
		default:
			return false
		}
	}
	return p.object
}

// write writes the set below a field that is new, or, unless owned, was null.
func (p *plan) write(out []byte, v unsafe.Pointer, owned bool) ([]byte, bool) {
	switch p.kind {
	case planText, planBool, planInt, planQuantity:
		return append(out, leaf...), p.holds
	case planIntOrString:
		return append(out, leaf...), p.fits(v)
	case planTime, planMicroTime:
		return append(out, leaf...), p.holds && (p.nullable || !p.timeless(v))
	case planUnknown:
		return out, false
	case planStruct:
		return p.writeStruct(out, v, owned)
	}
	if isNil(v) {
		return append(out, leaf...), p.nullable
	}
	switch p.kind {
	case planBytes:
		return append(out, leaf...), p.holds
	case planPointer:
		return p.of.write(out, *(*unsafe.Pointer)(v), owned)
	case planList:
		return p.writeList(out, v, owned)
	}
	return p.writeMap(out, v, owned)
}

// open begins the members of a field.
func open(out []byte, owned bool) []byte {
	if owned {
		return append(out, `{".":{}`...)
	}
	return append(out, '{')
}

func (p *plan) writeStruct(out []byte, v unsafe.Pointer, owned bool) ([]byte, bool) {
	if p.whole {
		return append(out, leaf...), p.fits(v)
	}
	beginning := len(out)
	out = open(out, owned)
	unchanged := len(out)
	for i := range p.fields {
		f := &p.fields[i]
		at := unsafe.Add(v, f.offset)
		if f.omits && f.plan.empty(at) {
			continue
		}
		var ok bool
		if out, ok = f.plan.write(appendLabel(out, f.label), at, true); !ok {
			return out, false
		}
	}
	if len(out) == unchanged {
		return append(out[:beginning], leaf...), true
	}
	return append(out, '}'), true
}

// keysOf returns the sorted keys of a map, in few if they fit.
func (p *plan) keysOf(v unsafe.Pointer, few []string) []string {
	switch p.kind {
	case planTexts:
		for key := range *(*map[string]string)(v) {
			few = append(few, key)
		}
	case planQuantities:
		for key := range *(*map[string]resource.Quantity)(v) {
			few = append(few, key)
		}
	case planOctets:
		for key, value := range *(*map[string][]byte)(v) {
			if value == nil && !p.nullable {
				return nil
			}
			few = append(few, key)
		}
	}
	slices.Sort(few)
	return few
}

func (p *plan) writeMap(out []byte, v unsafe.Pointer, owned bool) ([]byte, bool) {
	if p.whole {
		return append(out, leaf...), p.fits(v)
	}
	n := sizeOfMap(v)
	if n == 0 {
		return append(out, leaf...), true
	}
	var few [16]string
	keys := p.keysOf(v, few[:0])
	if len(keys) != n || !p.holds {
		return out, false
	}
	out = open(out, owned)
	for _, key := range keys {
		if !jsontext.PlainText(key) {
			return out, false
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(append(out, `"f:`...), key...), `":{}`...)
	}
	return append(out, '}'), true
}

func (p *plan) writeList(out []byte, v unsafe.Pointer, owned bool) ([]byte, bool) {
	header := (*sliceHeader)(v)
	if p.whole {
		return append(out, leaf...), p.fits(v)
	}
	if header.n == 0 || !p.associative {
		return out, false
	}
	var few [32]int32
	order := few[:0]
	for i := range header.n {
		order = append(order, int32(i)) // lists are shorter
		if !p.named(p.element(header, i)) {
			return out, false
		}
	}
	for i := 1; i < len(order); i++ { // few, and mostly sorted
		for j := i; j > 0; j-- {
			which := p.compareNames(p.element(header, int(order[j-1])), p.element(header, int(order[j])))
			if which == 0 {
				return out, false
			}
			if which < 0 {
				break
			}
			order[j-1], order[j] = order[j], order[j-1]
		}
	}
	out = open(out, owned)
	for _, i := range order {
		at := p.element(header, int(i))
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		var ok bool
		if out, ok = p.of.write(p.appendName(out, at), at, true); !ok {
			return out, false
		}
	}
	return append(out, '}'), true
}

func (p *plan) element(header *sliceHeader, i int) unsafe.Pointer {
	return unsafe.Add(header.first, uintptr(i)*p.of.size)
}

// named reports whether an element of a list has a label with a single spelling.
func (p *plan) named(v unsafe.Pointer) bool {
	for i := range p.keys {
		k := &p.keys[i]
		at := unsafe.Add(v, k.offset)
		if k.omits && k.plan.empty(at) || k.plan.kind == planText && !jsontext.PlainText(*(*string)(at)) {
			return false // absent: the key may have a default
		}
	}
	return true
}

// compareNames orders elements as managedFields does.
func (p *plan) compareNames(a, b unsafe.Pointer) int {
	for i := range p.keys {
		k := &p.keys[i]
		if order := k.plan.compare(unsafe.Add(a, k.offset), unsafe.Add(b, k.offset)); order != 0 {
			return order
		}
	}
	return 0
}

// appendName writes the label of an element.
func (p *plan) appendName(out []byte, v unsafe.Pointer) []byte {
	for i := range p.keys {
		k := &p.keys[i]
		at := unsafe.Add(v, k.offset)
		out = append(out, k.label...)
		if k.plan.kind == planText {
			out = append(append(append(out, `\"`...), *(*string)(at)...), `\"`...)
		} else {
			out = strconv.AppendInt(out, typed.Integer(at, k.plan.size), 10)
		}
	}
	if p.keys[0].label == nameless {
		return append(out, `":`...)
	}
	return append(out, `}":`...)
}

// fits reports whether a value certainly has its type and contains nothing whose label
// depends on values.
func (p *plan) fits(v unsafe.Pointer) bool {
	switch p.kind {
	case planText, planBool, planInt, planQuantity:
		return p.holds
	case planIntOrString:
		if (*intstr.IntOrString)(v).Type == intstr.Int {
			return p.holds
		}
		return p.holdsText
	case planTime, planMicroTime:
		return p.holds && !p.timeless(v)
	case planStruct:
		if !p.object {
			return false
		}
		for i := range p.fields {
			f := &p.fields[i]
			if at := unsafe.Add(v, f.offset); !(f.omits && f.plan.empty(at)) && !f.plan.fits(at) {
				return false
			}
		}
		return true
	case planUnknown:
		return false
	}
	if isNil(v) {
		return false
	}
	switch p.kind {
	case planBytes, planTexts, planQuantities:
		return p.holds
	case planPointer:
		return p.of.fits(*(*unsafe.Pointer)(v))
	case planList:
		header := (*sliceHeader)(v)
		for i := range header.n {
			if !p.of.fits(p.element(header, i)) {
				return false
			}
		}
		return p.whole
	}
	return false
}
