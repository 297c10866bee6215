// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package creation

import (
	"cmp"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/typed"
)

// plan is how values of a Go type with a schema are traversed.
type plan struct {
	// kind is typed.KindForeign where only a comparison supports the values.
	kind typed.Kind
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

// planField is a field of a struct, or without a Field an element of a list that is its own key.
type planField struct {
	label string // with quotes and colon, or the prefix of a key
	typed.Field
	omits bool // omitempty
	// unowned is set for fields that no manager owns.
	unowned bool
	plan    *plan
}

// nameless is the prefix of the label of an element that is identified by its value.
const nameless = `"v:`

// planner compiles plans; types may be recursive.
type planner struct{ known map[planKey]*plan }

type planKey struct {
	n *fields.Type
	t typed.Type
}

// root compiles the plan of an object; nil if not even its fields are known.
func (c *planner) root(n *fields.Type, t typed.Type, resets *fields.Tree) *plan {
	p := &plan{kind: typed.KindStruct, object: true}
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
			if f.plan.kind != typed.KindStruct || f.plan.whole || n.Field(name) == nil || f.Type().Go() != reflect.TypeFor[metav1.ObjectMeta]() {
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

func (c *planner) plan(n *fields.Type, t typed.Type) *plan {
	if p := c.known[planKey{n, t}]; p != nil {
		return p
	}
	p := &plan{}
	c.known[planKey{n, t}] = p
	if n == nil {
		return p
	}
	p.nullable = n.Nullable()
	p.object, _ = n.Objects()
	if c.complete(p, n, t) {
		p.kind = t.Kind()
	}
	return p
}

// complete completes the plan of a type; false if only a comparison supports it.
func (c *planner) complete(p *plan, n *fields.Type, t typed.Type) bool {
	switch t.Kind() {
	case typed.KindText, typed.KindTime, typed.KindMicroTime, typed.KindQuantity, typed.KindOctets:
		p.holds = n.Holds(`""`)
	case typed.KindBool:
		p.holds = n.Holds("false")
	case typed.KindInt:
		p.holds = n.Holds("0")
	case typed.KindIntOrString:
		p.holds, p.holdsText = n.Holds("0"), n.Holds(`""`)
	case typed.KindPointer:
		p.of = c.plan(n, t.Elem())
	case typed.KindList:
		return c.list(p, n, t)
	case typed.KindTexts, typed.KindQuantities, typed.KindBinaries:
		return mapping(p, n, t)
	case typed.KindStruct:
		var objects bool
		objects, p.whole = n.Objects()
		return objects && c.addFields(p, n, t)
	default:
		return false
	}
	return true
}

func (c *planner) list(p *plan, n *fields.Type, t typed.Type) bool {
	lists, whole, associative := n.Lists()
	if !lists || n.Items() == nil {
		return false
	}
	p.whole, p.associative = whole, associative
	p.of = c.plan(n.Items(), t.Elem())
	if p.whole || !p.associative {
		return true
	}
	keys := n.Keys()
	if len(keys) == 0 {
		p.keys = []planField{{label: nameless, plan: p.of}}
		if p.of.kind != typed.KindText && p.of.kind != typed.KindInt {
			return false
		}
		return true
	}
	if t.Elem().Kind() != typed.KindStruct || len(keys) > fields.MaxKeys {
		return false
	}
	// The fields of a recursive struct are not compiled yet.
	element := &plan{}
	if !c.addFields(element, n.Items(), t.Elem()) {
		return false
	}
	for i, name := range keys {
		before := `,`
		if i == 0 {
			before = `"k:{`
		}
		for _, f := range element.fields {
			if fieldName(f.label) == name && (f.plan.kind == typed.KindText || f.plan.kind == typed.KindInt) {
				f.label = before + `\"` + name + `\":`
				p.keys = append(p.keys, f)
			}
		}
	}
	return len(p.keys) == len(keys)
}

func mapping(p *plan, n *fields.Type, t typed.Type) bool {
	objects, whole := n.Objects()
	if !objects || n.Declares() || n.Rest() == nil {
		return false
	}
	p.whole, p.holds = whole, n.Rest().Holds(`""`)
	if t.Kind() == typed.KindBinaries {
		p.nullable = p.nullable && n.Rest().Nullable()
	}
	return true
}

// addFields adds the fields of a struct that JSON shows.
func (c *planner) addFields(p *plan, n *fields.Type, t typed.Type) bool {
	sample := reflect.New(t.Go()).Elem()
	for _, field := range value.TypeReflectEntryOf(t.Go()).OrderedFields() {
		in, ok := t.Field(field.JsonName)
		v := field.GetFrom(sample)
		if !ok || !v.CanSet() || v.Type() != in.Type().Go() {
			return false // embedded by pointer, or unexported
		}
		f := planField{label: `"f:` + field.JsonName + `":`, Field: in, omits: field.CanOmit(v), plan: c.plan(n.Field(field.JsonName), in.Type())}
		if f.omits && !omitsEmpty(field, v) {
			f.plan = &plan{}
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
func (p *plan) compare(a, b typed.Value) int {
	if p.kind == typed.KindText {
		return strings.Compare(a.Text(), b.Text())
	}
	return cmp.Compare(a.Int(), b.Int())
}
