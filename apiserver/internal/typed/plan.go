// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/internal/jsontext"
)

// Plan encodes and decodes values of a type. It is safe for concurrent use.
type Plan struct {
	root *plan
	size atomic.Int64 // of the last encoded document: the capacity for the next
}

// plans caches the plans of types: reflect.Type -> *Plan, nil for those without one.
// The number of types is bounded and a result never changes.
var plans sync.Map

// Of returns the plan for the type of an object, a pointer to a struct; nil if its JSON
// is unusual.
func Of(object any) *Plan {
	t := reflect.TypeOf(object)
	if known, ok := plans.Load(t); ok {
		return known.(*Plan)
	}
	var out *Plan
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		p := planner{known: map[reflect.Type]*plan{}}
		if root := p.plan(t.Elem()); root.kind == KindStruct {
			out = &Plan{root: root}
		}
	}
	known, _ := plans.LoadOrStore(t, out)
	return known.(*Plan)
}

// Kind is how a value is written, and how it lies in memory.
type Kind uint8

// The kinds of values.

const (
	KindForeign Kind = iota // encoded by the type itself
	KindText
	KindBool
	KindInt
	KindOctets
	KindTime
	KindMicroTime
	KindQuantity
	KindIntOrString
	KindFields
	KindRaw
	KindPointer
	KindList
	KindStruct
	KindTexts      // map[string]string, whatever its types are called
	KindQuantities // the same of quantities
	KindBinaries   // the same of []byte
)

// plan encodes and decodes values of one type.
type plan struct {
	kind   Kind
	reads  bool // for foreign types: it is a json.Unmarshaler
	size   uintptr
	typ    reflect.Type
	of     *plan // what a pointer leads to, or the elements of a list
	fields []field
	sorted []int // the fields in the order of their names
	hides  bool  // the struct has fields that JSON does not show
	byName map[string]int
	blocks []reflect.Type // arrays of 1, 2, 4 ... elements, for lists
	last   atomic.Int32   // length of the last list: the capacity for the next
}

// field is a field of a struct.
type field struct {
	label  string // with quotes and colon
	offset uintptr
	omit   omission
	plan   *plan
}

func (f *field) name() string { return f.label[1 : len(f.label)-2] }

// omission is the condition under which a field is omitted.
type omission uint8

const (
	never     omission = iota
	whenEmpty          // false, 0, nil, or without elements
	whenZero           // IsZero, or the zero value
)

// maxFields is the number of fields of a struct up to which duplicates are tracked.
const maxFields = 128

// longestBlock is the logarithm of the longest array that is allocated for a list at
// once.
const longestBlock = 10

// planner compiles plans; types may be recursive.
type planner struct{ known map[reflect.Type]*plan }

func (c *planner) plan(t reflect.Type) *plan {
	if p := c.known[t]; p != nil {
		return p
	}
	p := &plan{size: t.Size(), typ: t}
	c.known[t] = p
	p.kind = c.kindOf(p, t)
	return p
}

func (c *planner) kindOf(p *plan, t reflect.Type) Kind {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return KindTime
	case reflect.TypeFor[metav1.MicroTime]():
		return KindMicroTime
	case reflect.TypeFor[resource.Quantity]():
		return KindQuantity
	case reflect.TypeFor[intstr.IntOrString]():
		return KindIntOrString
	case reflect.TypeFor[metav1.FieldsV1]():
		return KindFields
	case reflect.TypeFor[runtime.RawExtension]():
		return KindRaw
	}
	if t.Kind() == reflect.Interface {
		return KindForeign
	}
	if t.Kind() == reflect.Pointer {
		p.of = c.plan(t.Elem())
		return KindPointer
	}
	if own(t) {
		p.reads = reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
		return KindForeign
	}
	switch t.Kind() {
	case reflect.String:
		return KindText
	case reflect.Bool:
		return KindBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return KindInt
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			if t.Elem() == reflect.TypeFor[byte]() {
				return KindOctets
			}
			return KindForeign
		}
		p.of = c.plan(t.Elem())
		if p.of.size == 0 {
			return KindForeign
		}
		for i := range longestBlock + 1 {
			p.blocks = append(p.blocks, reflect.ArrayOf(1<<i, t.Elem()))
		}
		return KindList
	case reflect.Map:
		return mapping(t)
	case reflect.Struct:
		if c.addFields(p, t, 0) && len(p.fields) <= maxFields {
			for _, name := range slices.Sorted(maps.Keys(p.byName)) {
				p.sorted = append(p.sorted, p.byName[name])
			}
			return KindStruct
		}
	}
	return KindForeign
}

// mapping returns the kind of a map.
func mapping(t reflect.Type) Kind {
	if t.Key().Kind() != reflect.String || own(t.Key()) {
		return KindForeign
	}
	switch {
	case t.Elem().Kind() == reflect.String && !own(t.Elem()):
		return KindTexts
	case t.Elem() == reflect.TypeFor[resource.Quantity]():
		return KindQuantities
	case t.Elem() == reflect.TypeFor[[]byte]():
		return KindBinaries
	}
	return KindForeign
}

// addFields adds the fields of a struct, and those of structs that it embeds.
func (c *planner) addFields(p *plan, t reflect.Type, offset uintptr) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-", !f.IsExported() && !f.Anonymous:
			p.hides = true
			continue
		case f.Anonymous && name == "":
			if f.Type.Kind() != reflect.Struct || own(f.Type) || !c.addFields(p, f.Type, offset+f.Offset) {
				return false
			}
			continue
		case name == "" || !jsontext.PlainText(name):
			return false
		}
		if !f.IsExported() {
			return false
		}
		of := field{label: `"` + name + `":`, offset: offset + f.Offset, plan: c.plan(f.Type)}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "":
			case "omitempty":
				of.omit = max(of.omit, whenEmpty)
			case "omitzero":
				of.omit = whenZero
			default:
				return false
			}
		}
		if !of.canOmit(strings.Contains(options, "omitempty")) {
			return false
		}
		if p.byName == nil {
			p.byName = map[string]int{}
		}
		if _, twice := p.byName[name]; twice {
			return false // ambiguous names: the library decides
		}
		p.byName[name] = len(p.fields)
		p.fields = append(p.fields, of)
	}
	return true
}

// canOmit decides when a field is omitted; false if the condition is unusual.
func (f *field) canOmit(empty bool) bool {
	switch f.plan.kind {
	case KindTime, KindMicroTime:
	case KindStruct, KindQuantity, KindIntOrString, KindFields, KindRaw:
		if f.omit == whenEmpty { // no struct is empty
			f.omit = never
		}
		return f.omit == never
	case KindForeign:
		k := f.plan.typ.Kind()
		if f.omit == whenEmpty && k == reflect.Struct {
			f.omit = never
		}
		return f.omit == never || f.omit == whenEmpty && (k == reflect.Map || k == reflect.Slice || k == reflect.Interface)
	default:
		if f.omit == whenZero {
			if !empty || f.plan.kind == KindPointer {
				return false
			}
			f.omit = whenEmpty // which is all that is zero, and more
		}
		return true
	}
	if f.omit == whenEmpty {
		f.omit = never
	}
	return true
}

// own reports whether a type has JSON methods of its own.
func own(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}
