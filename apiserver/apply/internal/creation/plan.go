// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package creation

import (
	"cmp"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/internal/jsontext"
)

// plan is how values of a Go type with a schema are traversed.
type plan struct {
	kind planKind
	size uintptr
	// holds is set if scalars, or those of a map, are of their schema type; holdsText
	// the same for strings where values may be strings or numbers.
	holds, holdsText bool
	// nullable is set if null and the other values have the same type.
	nullable bool
	// whole lists, maps and structs are atomic.
	whole, object bool
	// associative lists have elements identified by keys.
	associative bool
	keys        []planField
	fields      []planField // of a struct, by name
	of          *plan       // of a pointer, or of the elements of a list
}

// planField is a field of a struct.
type planField struct {
	label  string // with quotes and colon, or the prefix of a key
	offset uintptr
	omits  bool // omitempty
	// unowned is set for fields that no manager owns.
	unowned bool
	plan    *plan
}

type planKind uint8

const (
	planUnknown planKind = iota // only a comparison supports it
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
	planTexts      // map[string]string, under any type name
	planQuantities // the same of quantities
	planOctets     // the same of []byte
)

// nameless is the prefix of the label of an element that is identified by its value.
const nameless = `"v:`

// planner compiles plans; types may be recursive.
type planner struct{ known map[planKey]*plan }

type planKey struct {
	n *fields.Type
	t reflect.Type
}

// root compiles the plan of an object; nil if not even its fields are known.
func (c *planner) root(n *fields.Type, t reflect.Type, resets *fields.Tree) *plan {
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
			meta, ok := reflect.TypeFor[metav1.ObjectMeta](), n.Field(name) != nil
			if f.plan.kind != planStruct || f.plan.whole || !ok || f.plan != c.known[planKey{n.Field(name), meta}] {
				return nil
			}
			f.plan = ownMetadata(f.plan)
		}
		if has, whole := resets.Top(name); has {
			if !whole {
				return nil
			}
			f.unowned = true
		}
		kept = append(kept, f)
	}
	p.fields = kept
	return p
}

// fieldName returns the name of a field from its label.
func fieldName(label string) string { return label[len(`"f:`) : len(label)-len(`":`)] }

// ownMetadata returns the plan of the metadata of an object, in which no manager owns
// managedFields nor the fields that the server sets.
func ownMetadata(p *plan) *plan {
	out := *p
	out.fields = nil
	for _, f := range p.fields {
		switch fieldName(f.label) {
		case "managedFields":
			continue
		case "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "resourceVersion":
			f.unowned = true
		}
		out.fields = append(out.fields, f)
	}
	return &out
}

func (c *planner) plan(n *fields.Type, t reflect.Type) *plan {
	if p := c.known[planKey{n, t}]; p != nil {
		return p
	}
	p := &plan{size: t.Size()}
	c.known[planKey{n, t}] = p
	if n == nil {
		return p
	}
	p.nullable = n.Nullable()
	p.object, _ = n.Objects()
	p.kind = c.kindOf(p, n, t)
	return p
}

// kindOf returns the kind of a type, and completes its plan.
func (c *planner) kindOf(p *plan, n *fields.Type, t reflect.Type) planKind {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		p.holds = n.Holds(`""`)
		return planTime
	case reflect.TypeFor[metav1.MicroTime]():
		p.holds = n.Holds(`""`)
		return planMicroTime
	case reflect.TypeFor[resource.Quantity]():
		p.holds = n.Holds(`""`)
		return planQuantity
	case reflect.TypeFor[intstr.IntOrString]():
		p.holds, p.holdsText = n.Holds("0"), n.Holds(`""`)
		return planIntOrString
	}
	if value.TypeReflectEntryOf(t).CanConvertToUnstructured() && t.Kind() != reflect.Pointer {
		return planUnknown
	}
	switch t.Kind() {
	case reflect.String:
		p.holds = n.Holds(`""`)
		return planText
	case reflect.Bool:
		p.holds = n.Holds("false")
		return planBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.holds = n.Holds("0")
		return planInt
	case reflect.Pointer:
		p.of = c.plan(n, t.Elem())
		return planPointer
	case reflect.Slice:
		return c.list(p, n, t)
	case reflect.Map:
		return mapping(p, n, t)
	case reflect.Struct:
		var objects bool
		objects, p.whole = n.Objects()
		if objects && c.addFields(p, n, t) {
			return planStruct
		}
	}
	return planUnknown
}

func (c *planner) list(p *plan, n *fields.Type, t reflect.Type) planKind {
	if t.Elem().Kind() == reflect.Uint8 {
		p.holds = n.Holds(`""`)
		return planBytes
	}
	lists, whole, associative := n.Lists()
	if !lists || n.Items() == nil {
		return planUnknown
	}
	p.whole, p.associative = whole, associative
	p.of = c.plan(n.Items(), t.Elem())
	if p.whole || !p.associative {
		return planList
	}
	keys := n.Keys()
	if len(keys) == 0 {
		p.keys = []planField{{label: nameless, plan: p.of}}
		if p.of.kind != planText && p.of.kind != planInt {
			return planUnknown
		}
		return planList
	}
	if t.Elem().Kind() != reflect.Struct || len(keys) > fields.MaxKeys {
		return planUnknown
	}
	// The fields of a recursive struct are not compiled yet.
	element := &plan{}
	if !c.addFields(element, n.Items(), t.Elem()) {
		return planUnknown
	}
	for i, name := range keys {
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
	if len(p.keys) != len(keys) {
		return planUnknown
	}
	return planList
}

func mapping(p *plan, n *fields.Type, t reflect.Type) planKind {
	objects, whole := n.Objects()
	if t.Key().Kind() != reflect.String || !objects || n.Declares() || n.Rest() == nil {
		return planUnknown
	}
	p.whole, p.holds = whole, n.Rest().Holds(`""`)
	switch {
	case t.Elem().Kind() == reflect.String && !value.TypeReflectEntryOf(t.Elem()).CanConvertToUnstructured():
		return planTexts
	case t.Elem() == reflect.TypeFor[resource.Quantity]():
		return planQuantities
	case t.Elem() == reflect.TypeFor[[]byte]():
		p.nullable = p.nullable && n.Rest().Nullable()
		return planOctets
	}
	return planUnknown
}

// addFields adds the fields of a struct that JSON shows.
func (c *planner) addFields(p *plan, n *fields.Type, t reflect.Type) bool {
	sample := reflect.New(t).Elem()
	for _, field := range value.TypeReflectEntryOf(t).OrderedFields() {
		v := field.GetFrom(sample)
		if !v.CanAddr() || !v.CanSet() || !jsontext.PlainText(field.JsonName) {
			return false // embedded by pointer, or unexported
		}
		f := planField{
			label: `"f:` + field.JsonName + `":`, offset: v.UnsafeAddr() - sample.UnsafeAddr(),
			omits: field.CanOmit(v), plan: c.plan(n.Field(field.JsonName), v.Type()),
		}
		if f.omits && !omitsEmpty(field, v) {
			f.plan = &plan{size: v.Type().Size()}
		}
		p.fields = append(p.fields, f)
	}
	return true
}

// omitsEmpty reports whether a field that is omitted when it is zero is omitted exactly
// when it is empty: zero, or without elements.
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

// compare orders two strings or numbers.
func (p *plan) compare(a, b unsafe.Pointer) int {
	if p.kind == planText {
		return strings.Compare(*(*string)(a), *(*string)(b))
	}
	return cmp.Compare(typed.Integer(a, p.size), typed.Integer(b, p.size))
}
