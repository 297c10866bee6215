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
	plan *typed.Plan
	root *plan
	// texts are *[]byte, the buffers for sets.
	texts sync.Pool
}

// New compiles the Go type of an object; nil if only [fields.Compare] supports it. resets are
// the fields that no manager owns.
func New(n *fields.Type, object any, resets *fields.Tree) *Creation {
	p := typed.Of(object)
	if n == nil || p == nil {
		return nil
	}
	t := p.Type()
	if t.Go().NumField() == 0 || t.Go().Field(0).Type != reflect.TypeFor[metav1.TypeMeta]() {
		return nil
	}
	if objects, atomic := n.Objects(); !objects || atomic {
		return nil
	}
	root := (&planner{known: map[planKey]*plan{}}).root(n, t, resets)
	if root == nil {
		return nil
	}
	return &Creation{plan: p, root: root, texts: sync.Pool{New: func() any { return new([]byte) }}}
}

// Fresh reports whether an object is of the type, and has only a kind.
func (c *Creation) Fresh(object any) bool {
	if typed.Of(object) != c.plan {
		return false
	}
	v := c.plan.Value(object)
	for i := range c.root.fields {
		if !c.root.fields[i].Of(v).IsZero() {
			return false
		}
	}
	return true
}

// Of returns the set of an object of the type; nil if no manager owns any of its fields.
// false means that [fields.Compare] must be used.
//
//steer:fast creation
func (c *Creation) Of(object any) (*metav1.FieldsV1, bool) {
	buffer := c.texts.Get().(*[]byte)
	defer c.texts.Put(buffer)
	out, ok := c.root.differing((*buffer)[:0], c.plan.Value(object))
	*buffer = out
	if !ok || len(out) == len(leaf) {
		return nil, ok
	}
	set := &metav1.FieldsV1{}
	set.SetRawBytes(out)
	return set, true
}

const leaf = "{}"

// empty reports whether omitempty omits a value of the field. Where the plan supports none,
// other values may be omitted as well.
func (f *planField) empty(v typed.Value) bool {
	if f.plan.kind == typed.KindForeign {
		return v.IsZero()
	}
	return v.Empty()
}

// skips reports whether a value of the field is encoded as that of an empty object.
func (f *planField) skips(v typed.Value) bool { return f.omits && f.empty(v) || !f.omits && v.IsZero() }

// differing writes the fields of a struct that differ from an empty one.
func (p *plan) differing(out []byte, v typed.Value) ([]byte, bool) {
	out = append(out, '{')
	for i := range p.fields {
		f := &p.fields[i]
		at := f.Of(v)
		if f.skips(at) {
			continue
		}
		before := len(out)
		out = appendLabel(out, f.label)
		beginning := len(out)
		var ok bool
		switch {
		case f.omits:
			out, ok = f.plan.write(out, at, true)
		case f.plan.kind == typed.KindStruct && !f.plan.whole:
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
func (p *plan) replace(out []byte, v typed.Value) ([]byte, bool) {
	switch p.kind {
	case typed.KindText, typed.KindBool, typed.KindInt:
		if p.kind == typed.KindText && v.Empty() { // a string that is empty but points into a document
			return out, true
		}
		return append(out, leaf...), p.holds
	case typed.KindTime, typed.KindMicroTime:
		if v.Empty() {
			return out, true
		}
		return append(out, leaf...), p.holds && p.nullable
	case typed.KindStruct:
		same, ok := p.blank(v)
		if same || !ok {
			return out, ok
		}
		return append(out, leaf...), p.blankFits() && p.fits(v)
	case typed.KindPointer, typed.KindOctets, typed.KindList, typed.KindTexts, typed.KindQuantities, typed.KindBinaries:
		if v.IsNil() {
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
func (p *plan) blank(v typed.Value) (same, ok bool) {
	for i := range p.fields {
		f := &p.fields[i]
		at := f.Of(v)
		if f.skips(at) {
			continue
		}
		if f.omits {
			return false, f.plan.kind != typed.KindForeign
		}
		switch f.plan.kind {
		case typed.KindText:
			if !at.Empty() {
				return false, true
			}
		case typed.KindBool, typed.KindInt, typed.KindPointer, typed.KindOctets, typed.KindList, typed.KindTexts, typed.KindQuantities, typed.KindBinaries:
			return false, true
		case typed.KindTime, typed.KindMicroTime:
			if !at.Empty() {
				return false, true
			}
		case typed.KindStruct:
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
		case typed.KindText, typed.KindBool, typed.KindInt:
			if !f.plan.holds {
				return false
			}
		case typed.KindStruct:
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
func (p *plan) write(out []byte, v typed.Value, owned bool) ([]byte, bool) {
	switch p.kind {
	case typed.KindText, typed.KindBool, typed.KindInt, typed.KindQuantity:
		return append(out, leaf...), p.holds
	case typed.KindIntOrString:
		return append(out, leaf...), p.fits(v)
	case typed.KindTime, typed.KindMicroTime:
		return append(out, leaf...), p.holds && (p.nullable || !v.Empty())
	case typed.KindForeign:
		return out, false
	case typed.KindStruct:
		return p.writeStruct(out, v, owned)
	}
	if v.IsNil() {
		return append(out, leaf...), p.nullable
	}
	switch p.kind {
	case typed.KindOctets:
		return append(out, leaf...), p.holds
	case typed.KindPointer:
		return p.of.write(out, v.Elem(), owned)
	case typed.KindList:
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

func (p *plan) writeStruct(out []byte, v typed.Value, owned bool) ([]byte, bool) {
	if p.whole {
		return append(out, leaf...), p.fits(v)
	}
	beginning := len(out)
	out = open(out, owned)
	unchanged := len(out)
	for i := range p.fields {
		f := &p.fields[i]
		at := f.Of(v)
		if f.omits && f.empty(at) {
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

// keysOf returns the sorted keys of a map, in few if they fit; none if a value is null and may
// not be.
func (p *plan) keysOf(v typed.Value, few []string) []string {
	if p.kind == typed.KindBinaries && !p.nullable {
		for _, value := range v.Binaries() {
			if value == nil {
				return nil
			}
		}
	}
	few = v.AppendKeys(few)
	slices.Sort(few)
	return few
}

func (p *plan) writeMap(out []byte, v typed.Value, owned bool) ([]byte, bool) {
	if p.whole {
		return append(out, leaf...), p.fits(v)
	}
	n := v.Len()
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

func (p *plan) writeList(out []byte, v typed.Value, owned bool) ([]byte, bool) {
	if p.whole {
		return append(out, leaf...), p.fits(v)
	}
	if v.Len() == 0 || !p.associative {
		return out, false
	}
	var few [32]int32
	order := few[:0]
	for i := range v.Len() {
		order = append(order, int32(i)) // lists are shorter
		if !p.named(v.Index(i)) {
			return out, false
		}
	}
	for i := 1; i < len(order); i++ { // few, and mostly sorted
		for j := i; j > 0; j-- {
			which := p.compareNames(v.Index(int(order[j-1])), v.Index(int(order[j])))
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
		at := v.Index(int(i))
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

// key returns what identifies an element of a list: one of its fields, or all of it.
func (f *planField) key(v typed.Value) typed.Value {
	if f.label == nameless {
		return v
	}
	return f.Of(v)
}

// named reports whether an element of a list has a label with a single spelling.
func (p *plan) named(v typed.Value) bool {
	for i := range p.keys {
		k := &p.keys[i]
		at := k.key(v)
		if k.omits && k.empty(at) || k.plan.kind == typed.KindText && !jsontext.PlainText(at.Text()) {
			return false // absent: the key may have a default
		}
	}
	return true
}

// compareNames orders elements as managedFields does.
func (p *plan) compareNames(a, b typed.Value) int {
	for i := range p.keys {
		k := &p.keys[i]
		if order := k.plan.compare(k.key(a), k.key(b)); order != 0 {
			return order
		}
	}
	return 0
}

// appendName writes the label of an element.
func (p *plan) appendName(out []byte, v typed.Value) []byte {
	for i := range p.keys {
		k := &p.keys[i]
		at := k.key(v)
		out = append(out, k.label...)
		if k.plan.kind == typed.KindText {
			out = append(append(append(out, `\"`...), at.Text()...), `\"`...)
		} else {
			out = strconv.AppendInt(out, at.Int(), 10)
		}
	}
	if p.keys[0].label == nameless {
		return append(out, `":`...)
	}
	return append(out, `}":`...)
}

// fits reports whether a value certainly has its type and contains nothing whose label
// depends on values.
func (p *plan) fits(v typed.Value) bool {
	switch p.kind {
	case typed.KindText, typed.KindBool, typed.KindInt, typed.KindQuantity:
		return p.holds
	case typed.KindIntOrString:
		if v.IntOrString().Type == intstr.Int {
			return p.holds
		}
		return p.holdsText
	case typed.KindTime, typed.KindMicroTime:
		return p.holds && !v.Empty()
	case typed.KindStruct:
		if !p.object {
			return false
		}
		for i := range p.fields {
			f := &p.fields[i]
			if at := f.Of(v); !(f.omits && f.empty(at)) && !f.plan.fits(at) {
				return false
			}
		}
		return true
	case typed.KindForeign:
		return false
	}
	if v.IsNil() {
		return false
	}
	switch p.kind {
	case typed.KindOctets, typed.KindTexts, typed.KindQuantities:
		return p.holds
	case typed.KindPointer:
		return p.of.fits(v.Elem())
	case typed.KindList:
		for i := range v.Len() {
			if !p.of.fits(v.Index(i)) {
				return false
			}
		}
		return p.whole
	}
	return false
}
