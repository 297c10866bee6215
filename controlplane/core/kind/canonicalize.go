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

// fieldTree knows where a type has what changes on the way into the store of
// Kubernetes, which keeps built-in kinds as protobuf: that does not tell an empty list
// or map from none, nor a null in a map of bytes from an empty value. It is a tree over
// the type, of the parts alone that have such fields. nil: nothing below.
type fieldTree struct {
	fields []treeField // of a struct
	inner  *fieldTree  // of what a pointer, list or map holds
	amounts,
	bytes bool // a map of amounts of resources; of bytes
	// shown reports that a list or map is in the JSON also when it is empty.
	shown bool
}

type treeField struct {
	index int
	tree  *fieldTree
}

var (
	amountsType = reflect.TypeFor[corev1.ResourceList]()
	bytesType   = reflect.TypeFor[map[string][]byte]()
)

// fieldTrees of a type: what changes on the way into the store, and what is rounded.
type fieldTrees struct{ canonical, rounded *fieldTree }

func treesOf(t reflect.Type) fieldTrees {
	whole := treeOf(t, map[reflect.Type]bool{})
	return fieldTrees{
		canonical: whole.filter(func(f *fieldTree) bool { return f.shown || f.bytes }),
		rounded:   whole.filter(func(f *fieldTree) bool { return f.amounts }),
	}
}

// filter returns the parts of a tree that are wanted, and what leads to them.
func (f *fieldTree) filter(wanted func(*fieldTree) bool) *fieldTree {
	if f == nil {
		return nil
	}
	out := *f
	out.fields = nil
	for _, field := range f.fields {
		if below := field.tree.filter(wanted); below != nil {
			out.fields = append(out.fields, treeField{field.index, below})
		}
	}
	out.inner = f.inner.filter(wanted)
	if out.fields == nil && out.inner == nil && !wanted(f) {
		return nil
	}
	return &out
}

// treeOf returns the tree of a type; within are the structs that it is part of, which
// are not followed twice.
func treeOf(t reflect.Type, within map[reflect.Type]bool) *fieldTree {
	f := &fieldTree{}
	switch {
	case t == amountsType:
		f.amounts = true
	case t == bytesType:
		f.bytes = true
	case t.Kind() == reflect.Struct && !within[t]:
		within[t] = true
		for i := range t.NumField() {
			if of := treeOfField(t.Field(i), within); of != nil {
				f.fields = append(f.fields, treeField{i, of})
			}
		}
		delete(within, t)
		if f.fields == nil {
			return nil
		}
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		if f.inner = treeOf(t.Elem(), within); f.inner == nil {
			return nil
		}
	default:
		return nil
	}
	return f
}

func treeOfField(field reflect.StructField, within map[reflect.Type]bool) *fieldTree {
	if !field.IsExported() || field.Name == "TypeMeta" || field.Name == "ObjectMeta" {
		return nil
	}
	f := treeOf(field.Type, within)
	name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
	collection := field.Type.Kind() == reflect.Map || field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() != reflect.Uint8
	if collection && name != "" && !strings.Contains(rest, "omitempty") {
		if f == nil {
			f = &fieldTree{}
		}
		f.shown = true
	}
	return f
}

// canonicalize gives an object the form that it has once it is stored.
func (f fieldTrees) canonicalize(obj resource.Object) {
	f.canonical.walk(reflect.ValueOf(obj).Elem(), false)
}

// round rounds amounts of resources up to thousandths, as Kubernetes does where it sets
// defaults.
func (f fieldTrees) round(obj resource.Object) { f.rounded.walk(reflect.ValueOf(obj).Elem(), true) }

func (f *fieldTree) walk(v reflect.Value, round bool) {
	if f == nil {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range f.fields {
			field.tree.walk(v.Field(field.index), round)
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
