// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// filler makes random objects.
type filler struct {
	*rand.Rand
	// sparse is how many of ten fields are left alone.
	sparse int
}

// fill sets what is exported in v; nothing below a depth of 12 is, where types
// contain themselves.
func (r *filler) fill(v reflect.Value, depth int) {
	if r.special(v) || depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", r.IntN(1000)))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(r.Int64())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		v.SetUint(r.Uint64())
	case reflect.Float64:
		v.SetFloat(r.NormFloat64())
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		r.fill(p.Elem(), depth+1)
		v.Set(p)
	case reflect.Slice:
		n := r.IntN(4)
		list := reflect.MakeSlice(v.Type(), n, n+r.IntN(2)*3) // some have room to grow
		for i := range n {
			r.fill(list.Index(i), depth+1)
		}
		v.Set(list)
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		for range r.IntN(12) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			r.fill(key, depth+1)
			r.fill(value, depth+1)
			m.SetMapIndex(key, value)
		}
		v.Set(m)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && r.IntN(10) >= r.sparse {
				r.fill(v.Field(i), depth+1)
			}
		}
	}
}

// special fills the types that are more than their fields.
func (r *filler) special(v reflect.Value) bool {
	at := time.Unix(r.Int64N(1<<32), r.Int64N(1e9)).In(time.FixedZone("somewhere", r.IntN(3600)))
	var made any
	switch v.Interface().(type) {
	case metav1.Time:
		made = metav1.NewTime(at)
	case metav1.MicroTime:
		made = metav1.NewMicroTime(at)
	case resource.Quantity:
		made = resource.MustParse([...]string{"0", "100m", "1.5Gi", "12e6", "-7", "123456789012345678901234567890"}[r.IntN(6)])
	case runtime.RawExtension:
		made = runtime.RawExtension{Raw: []byte("{}"), Object: &corev1.Pod{Spec: corev1.PodSpec{NodeName: fmt.Sprint(r.IntN(10))}}}
	default:
		return false
	}
	v.Set(reflect.ValueOf(made))
	return true
}
