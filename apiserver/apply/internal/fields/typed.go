// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"bytes"
	"encoding/base64"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// CompareTyped is [Compare] for two structs of one Go type, as JSON would show them.
// Only the parts that differ are converted to JSON.
//
//steer:fast comparison
func CompareTyped(n *Type, before, after reflect.Value) (*Tree, bool) {
	t := newTree(16)
	return t, t.compareTyped(n, 0, before, after)
}

// compareTyped marks below a branch the differences between two Go values of a type;
// false as for compare.
func (t *Tree) compareTyped(n *Type, at int32, a, b reflect.Value) bool {
	if n == nil || !n.object || n.wholeObject {
		return false
	}
	last := int32(0)
	for _, field := range value.TypeReflectEntryOf(a.Type()).OrderedFields() {
		if t.isManagedFields(at, field.JsonName) {
			continue
		}
		valueA, valueB := field.GetFrom(a), field.GetFrom(b)
		inA, inB := !field.CanOmit(valueA), !field.CanOmit(valueB)
		if inA == inB && (!inA || same(valueA, valueB)) {
			continue
		}
		last = t.growField(at, last, field.JsonName)
		next := n.Field(field.JsonName)
		if inA && inB {
			structA, ok := structOf(valueA)
			structB, alsoOK := structOf(valueB)
			if ok && alsoOK && next != nil && next.object && !next.wholeObject {
				if !t.compareTyped(next, last, structA, structB) {
					return false
				}
				continue
			}
		}
		var x, y any
		ok, alsoOK := true, true
		if inA {
			x, ok = plain(valueA)
		}
		if inB {
			y, alsoOK = plain(valueB)
		}
		if !ok || !alsoOK || !t.compare(next, last, sideOf(both, inA, inB), x, y) {
			return false
		}
	}
	return true
}

// structOf returns the struct that a value is or points to, unless its type has a JSON
// method.
func structOf(v reflect.Value) (reflect.Value, bool) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v, v.Kind() == reflect.Struct && !value.TypeReflectEntryOf(v.Type()).CanConvertToUnstructured()
}

// same reports whether two Go values of one type certainly have the same JSON.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return a.UnsafePointer() == b.UnsafePointer() || same(a.Elem(), b.Elem())
	case reflect.Slice:
		return sameLists(a, b)
	case reflect.Map:
		return sameMaps(a, b)
	case reflect.Struct:
		return sameStructs(a, b)
	}
	return false
}

func sameLists(a, b reflect.Value) bool {
	if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
		return false
	}
	if a.UnsafePointer() == b.UnsafePointer() {
		return true
	}
	if a.Type().Elem().Kind() == reflect.Uint8 {
		return bytes.Equal(a.Bytes(), b.Bytes())
	}
	for i := range a.Len() {
		if !same(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func sameMaps(a, b reflect.Value) bool {
	if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
		return false
	}
	if a.UnsafePointer() == b.UnsafePointer() {
		return true
	}
	if texts, ok := a.Interface().(map[string]string); ok {
		others := b.Interface().(map[string]string)
		for key, text := range texts {
			if other, ok := others[key]; !ok || text != other {
				return false
			}
		}
		return true
	}
	for pairs := a.MapRange(); pairs.Next(); {
		other := b.MapIndex(pairs.Key())
		if !other.IsValid() || !same(pairs.Value(), other) {
			return false
		}
	}
	return true
}

func sameStructs(a, b reflect.Value) bool {
	entry := value.TypeReflectEntryOf(a.Type())
	if entry.CanConvertToUnstructured() {
		return sameConverted(entry, a, b)
	}
	for _, field := range entry.OrderedFields() {
		valueA, valueB := field.GetFrom(a), field.GetFrom(b)
		in := !field.CanOmit(valueA)
		if in == field.CanOmit(valueB) || in && !same(valueA, valueB) {
			return false
		}
	}
	return true
}

// sameConverted is same for types with a JSON method.
func sameConverted(entry *value.TypeReflectCacheEntry, a, b reflect.Value) bool {
	if a.CanAddr() && b.CanAddr() {
		switch x := a.Addr().Interface().(type) {
		case *metav1.Time:
			y := b.Addr().Interface().(*metav1.Time)
			return x.IsZero() == y.IsZero() && x.Unix() == y.Unix()
		case *metav1.MicroTime:
			y := b.Addr().Interface().(*metav1.MicroTime)
			return x.IsZero() == y.IsZero() && x.UnixMicro() == y.UnixMicro()
		case *metav1.FieldsV1:
			return bytes.Equal(x.GetRawBytes(), b.Addr().Interface().(*metav1.FieldsV1).GetRawBytes())
		case *resource.Quantity:
			y := b.Addr().Interface().(*resource.Quantity)
			return x.Format == y.Format && x.Cmp(*y) == 0
		}
	}
	x, err := entry.ToUnstructured(a)
	if err != nil {
		return false
	}
	y, err := entry.ToUnstructured(b)
	return err == nil && wire.Equal(x, y)
}

// plain returns the decoded JSON of a Go value; false if this package cannot compare
// it.
func plain(v reflect.Value) (any, bool) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, true
		}
		v = v.Elem()
	}
	entry := value.TypeReflectEntryOf(v.Type())
	if entry.CanConvertToUnstructured() {
		out, err := entry.ToUnstructured(v)
		return out, err == nil
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), true
	case reflect.Bool:
		return v.Bool(), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), true
	case reflect.Slice:
		return plainList(v)
	case reflect.Map:
		return plainMap(v)
	case reflect.Struct:
		return plainStruct(entry, v)
	}
	return nil, false
}

func plainList(v reflect.Value) (any, bool) {
	switch {
	case v.IsNil():
		return nil, true
	case v.Type().Elem().Kind() == reflect.Uint8:
		return base64.StdEncoding.EncodeToString(v.Bytes()), true
	}
	out := make([]any, v.Len())
	for i := range out {
		var ok bool
		if out[i], ok = plain(v.Index(i)); !ok {
			return nil, false
		}
	}
	return out, true
}

func plainMap(v reflect.Value) (any, bool) {
	if v.IsNil() {
		return nil, true
	}
	if v.Type().Key().Kind() != reflect.String {
		return nil, false
	}
	out := make(map[string]any, v.Len())
	for pairs := v.MapRange(); pairs.Next(); {
		member, ok := plain(pairs.Value())
		if !ok {
			return nil, false
		}
		out[pairs.Key().String()] = member
	}
	return out, true
}

func plainStruct(entry *value.TypeReflectCacheEntry, v reflect.Value) (any, bool) {
	out := map[string]any{}
	for _, field := range entry.OrderedFields() {
		member := field.GetFrom(v)
		if field.CanOmit(member) {
			continue
		}
		value, ok := plain(member)
		if !ok {
			return nil, false
		}
		out[field.JsonName] = value
	}
	return out, true
}
