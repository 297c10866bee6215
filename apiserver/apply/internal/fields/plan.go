// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"cmp"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/steer-dev/steer/apiserver/internal/typed"
)

// plan says how values of a Go type that a schema describes are gone through.
type plan struct {
	kind planKind
	size uintptr
	// holds tells that scalars are of their type, or those that a map has;
	// holdsText the same of texts, where values may be texts or numbers.
	holds, holdsText bool
	// nullable tells that null has the form of all other values.
	nullable bool
	// whole lists, maps and structs have one owner.
	whole, object bool
	// associative lists have elements that keys name.
	associative bool
	keys        []planField
	fields      []planField // of a struct, by name
	of          *plan       // what a pointer leads to, or the elements of a list
}

// planField is a field of a struct.
type planField struct {
	label  string // with the quotes and the colon, or what stands before a key
	offset uintptr
	omits  bool // JSON does not have it when it is empty
	// nobodys is a field that nobody owns.
	nobodys bool
	plan    *plan
}

type planKind uint8

const (
	planUnknown planKind = iota // what only CompareTyped knows
	planText
	planBool
	planInt
	planBytes
	planTime
	planMicroTime
	planQuantity
	planIntOrString
	planPointer
	planList
	planStruct
	planTexts      // map[string]string, whatever its types are called
	planQuantities // the same of quantities
	planOctets     // the same of []byte
)

// nameless stands before an element that is its own name.
const nameless = `"v:`

// planner works plans out; types contain themselves.
type planner struct{ known map[planKey]*plan }

type planKey struct {
	n *Type
	t reflect.Type
}

// root is the plan of an object; nil for one of which not even the fields are known.
func (c *planner) root(n *Type, t reflect.Type, resets *Tree) *plan {
	p := &plan{kind: planStruct, size: t.Size(), object: true}
	if !c.addFields(p, n, t) {
		return nil
	}
	kept := p.fields[:0]
	for _, f := range p.fields {
		name := fieldName(f.label)
		switch name {
		case "apiVersion", "kind":
			continue
		case "metadata":
			meta, ok := reflect.TypeFor[metav1.ObjectMeta](), n.field(name) != nil
			if f.plan.kind != planStruct || f.plan.whole || !ok || f.plan != c.known[planKey{n.field(name), meta}] {
				return nil
			}
			f.plan = ownMetadata(f.plan)
		}
		for i := resets.branches[0].child; i != 0; i = resets.branches[i].next {
			if b := &resets.branches[i]; b.label == "f:"+name {
				if b.mark != owned {
					return nil
				}
				f.nobodys = true
			}
		}
		kept = append(kept, f)
	}
	p.fields = kept
	return p
}

// fieldName is the name of a field in its label.
func fieldName(label string) string { return label[len(`"f:`) : len(label)-len(`":`)] }

// ownMetadata is the plan of the metadata of an object, of which nobody owns the
// record nor what the server sets.
func ownMetadata(p *plan) *plan {
	out := *p
	out.fields = nil
	for _, f := range p.fields {
		switch fieldName(f.label) {
		case "managedFields":
			continue
		case "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "resourceVersion":
			f.nobodys = true
		}
		out.fields = append(out.fields, f)
	}
	return &out
}

func (c *planner) plan(n *Type, t reflect.Type) *plan {
	if p := c.known[planKey{n, t}]; p != nil {
		return p
	}
	p := &plan{size: t.Size()}
	c.known[planKey{n, t}] = p
	if n == nil {
		return p
	}
	p.nullable, p.object = n.sole() != otherForm, n.object
	p.kind = c.kindOf(p, n, t)
	return p
}

// kindOf finds the kind of a type, and what there is to say about it.
func (c *planner) kindOf(p *plan, n *Type, t reflect.Type) planKind {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		p.holds = n.holds("")
		return planTime
	case reflect.TypeFor[metav1.MicroTime]():
		p.holds = n.holds("")
		return planMicroTime
	case reflect.TypeFor[resource.Quantity]():
		p.holds = n.holds("")
		return planQuantity
	case reflect.TypeFor[intstr.IntOrString]():
		p.holds, p.holdsText = n.holds(int64(0)), n.holds("")
		return planIntOrString
	}
	if value.TypeReflectEntryOf(t).CanConvertToUnstructured() && t.Kind() != reflect.Pointer {
		return planUnknown
	}
	switch t.Kind() {
	case reflect.String:
		p.holds = n.holds("")
		return planText
	case reflect.Bool:
		p.holds = n.holds(false)
		return planBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.holds = n.holds(int64(0))
		return planInt
	case reflect.Pointer:
		p.of = c.plan(n, t.Elem())
		return planPointer
	case reflect.Slice:
		return c.list(p, n, t)
	case reflect.Map:
		return mapping(p, n, t)
	case reflect.Struct:
		p.whole = n.wholeObject
		if n.object && c.addFields(p, n, t) {
			return planStruct
		}
	}
	return planUnknown
}

func (c *planner) list(p *plan, n *Type, t reflect.Type) planKind {
	if t.Elem().Kind() == reflect.Uint8 {
		p.holds = n.holds("")
		return planBytes
	}
	if !n.list || n.items == nil {
		return planUnknown
	}
	p.whole, p.associative = n.wholeList, n.associative
	p.of = c.plan(n.items, t.Elem())
	if p.whole || !p.associative {
		return planList
	}
	if len(n.keys) == 0 {
		p.keys = []planField{{label: nameless, plan: p.of}}
		if p.of.kind != planText && p.of.kind != planInt {
			return planUnknown
		}
		return planList
	}
	if t.Elem().Kind() != reflect.Struct || len(n.keys) > maxKeys {
		return planUnknown
	}
	// Of a struct that contains itself the fields are not there yet.
	element := &plan{}
	if !c.addFields(element, n.items, t.Elem()) {
		return planUnknown
	}
	for i, name := range n.keys {
		before := `,`
		if i == 0 {
			before = `"k:{`
		}
		for _, f := range element.fields {
			if fieldName(f.label) == name && (f.plan.kind == planText || f.plan.kind == planInt) {
				f.label = before + `\"` + name + `\":`
				p.keys = append(p.keys, f)
			}
		}
	}
	if len(p.keys) != len(n.keys) {
		return planUnknown
	}
	return planList
}

func mapping(p *plan, n *Type, t reflect.Type) planKind {
	if t.Key().Kind() != reflect.String || !n.object || len(n.fields) > 0 || n.rest == nil {
		return planUnknown
	}
	p.whole, p.holds = n.wholeObject, n.rest.holds("")
	switch {
	case t.Elem().Kind() == reflect.String && !value.TypeReflectEntryOf(t.Elem()).CanConvertToUnstructured():
		return planTexts
	case t.Elem() == reflect.TypeFor[resource.Quantity]():
		return planQuantities
	case t.Elem() == reflect.TypeFor[[]byte]():
		p.nullable = p.nullable && n.rest.sole() != otherForm
		return planOctets
	}
	return planUnknown
}

// addFields adds those of a struct, as JSON shows them.
func (c *planner) addFields(p *plan, n *Type, t reflect.Type) bool {
	sample := reflect.New(t).Elem()
	for _, field := range value.TypeReflectEntryOf(t).OrderedFields() {
		v := field.GetFrom(sample)
		if !v.CanAddr() || !v.CanSet() || !typed.PlainText(field.JsonName) {
			return false // below a pointer, or hidden
		}
		f := planField{
			label: `"f:` + field.JsonName + `":`, offset: v.UnsafeAddr() - sample.UnsafeAddr(),
			omits: field.CanOmit(v), plan: c.plan(n.field(field.JsonName), v.Type()),
		}
		if f.omits && !omitsEmpty(field, v) {
			f.plan = &plan{size: v.Type().Size()}
		}
		p.fields = append(p.fields, f)
	}
	return true
}

// omitsEmpty reports whether a field that is left out when it is zero is so exactly when
// it is empty: zero, or without elements.
func omitsEmpty(field *value.FieldCacheEntry, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice:
		return field.CanOmit(reflect.MakeSlice(v.Type(), 0, 0))
	case reflect.Map:
		return field.CanOmit(reflect.MakeMap(v.Type()))
	case reflect.Struct:
		return v.Type() == reflect.TypeFor[metav1.Time]()
	}
	return true
}

// count is a whole number.
func (p *plan) count(v unsafe.Pointer) int64 {
	switch p.size {
	case 1:
		return int64(*(*int8)(v))
	case 2:
		return int64(*(*int16)(v))
	case 4:
		return int64(*(*int32)(v))
	}
	return *(*int64)(v)
}

// compare orders two texts or numbers.
func (p *plan) compare(a, b unsafe.Pointer) int {
	if p.kind == planText {
		return strings.Compare(*(*string)(a), *(*string)(b))
	}
	return cmp.Compare(p.count(a), p.count(b))
}
