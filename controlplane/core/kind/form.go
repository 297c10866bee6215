// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"

	"github.com/steer-dev/steer/apiserver/resource"
)

// form knows where a type has what changes its form on the way into the store of
// Kubernetes, which keeps built-in kinds as protobuf: that does not tell an empty list
// or map from none, nor a null in a map of bytes from an empty value. It is a tree over
// the type, of the parts alone that have such fields. nil: nothing below.
type form struct {
	fields []formField // of a struct
	inner  *form       // of what a pointer, list or map holds
	amounts,
	bytes bool // a map of amounts of resources; of bytes
	// shown reports that a list or map is in the JSON also when it is empty.
	shown bool
}

type formField struct {
	index int
	form  *form
}

var (
	amountsType = reflect.TypeFor[corev1.ResourceList]()
	bytesType   = reflect.TypeFor[map[string][]byte]()
)

// forms of a type: what changes on the way into the store, and what is rounded.
type forms struct{ settled, rounded *form }

func formsOf(t reflect.Type) forms {
	whole := formIn(t, map[reflect.Type]bool{})
	return forms{
		settled: whole.with(func(f *form) bool { return f.shown || f.bytes }),
		rounded: whole.with(func(f *form) bool { return f.amounts }),
	}
}

// with returns the parts of a form that are wanted, and what leads to them.
func (f *form) with(wanted func(*form) bool) *form {
	if f == nil {
		return nil
	}
	out := *f
	out.fields = nil
	for _, field := range f.fields {
		if below := field.form.with(wanted); below != nil {
			out.fields = append(out.fields, formField{field.index, below})
		}
	}
	out.inner = f.inner.with(wanted)
	if out.fields == nil && out.inner == nil && !wanted(f) {
		return nil
	}
	return &out
}

// formIn returns the form of a type; within are the structs that it is part of, which
// are not followed twice.
func formIn(t reflect.Type, within map[reflect.Type]bool) *form {
	f := &form{}
	switch {
	case t == amountsType:
		f.amounts = true
	case t == bytesType:
		f.bytes = true
	case t.Kind() == reflect.Struct && !within[t]:
		within[t] = true
		for i := range t.NumField() {
			if of := formOfField(t.Field(i), within); of != nil {
				f.fields = append(f.fields, formField{i, of})
			}
		}
		delete(within, t)
		if f.fields == nil {
			return nil
		}
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		if f.inner = formIn(t.Elem(), within); f.inner == nil {
			return nil
		}
	default:
		return nil
	}
	return f
}

func formOfField(field reflect.StructField, within map[reflect.Type]bool) *form {
	if !field.IsExported() || field.Name == "TypeMeta" || field.Name == "ObjectMeta" {
		return nil
	}
	f := formIn(field.Type, within)
	name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
	collection := field.Type.Kind() == reflect.Map || field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() != reflect.Uint8
	if collection && name != "" && !strings.Contains(rest, "omitempty") {
		if f == nil {
			f = &form{}
		}
		f.shown = true
	}
	return f
}

// settle gives an object the form that it has once it is stored.
func (f forms) settle(obj resource.Object) { f.settled.walk(reflect.ValueOf(obj).Elem(), false) }

// round rounds amounts of resources up to thousandths, as Kubernetes does where it sets
// defaults.
func (f forms) round(obj resource.Object) { f.rounded.walk(reflect.ValueOf(obj).Elem(), true) }

func (f *form) walk(v reflect.Value, round bool) {
	if f == nil {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range f.fields {
			field.form.walk(v.Field(field.index), round)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			f.inner.walk(v.Elem(), round)
		}
	case reflect.Slice:
		if f.shown && !round && v.Len() == 0 {
			v.SetZero()
		}
		if f.inner != nil {
			for i := range v.Len() {
				f.inner.walk(v.Index(i), round)
			}
		}
	case reflect.Map:
		switch {
		case v.Len() == 0:
			if f.shown && !round {
				v.SetZero()
			}
		case f.amounts && round:
			roundUp(v.Interface().(corev1.ResourceList))
		case f.bytes && !round:
			for key, value := range v.Interface().(map[string][]byte) {
				if value == nil {
					v.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf([]byte{}))
				}
			}
		}
	}
}

func roundUp(amounts corev1.ResourceList) {
	for name, amount := range amounts {
		if !amount.RoundUp(quantity.Milli) {
			amounts[name] = amount
		}
	}
}
