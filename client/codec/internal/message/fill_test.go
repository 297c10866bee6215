// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt([...]int64{0, 1, -1, 300, 1 << 30, -1 << 31, r.Int64()}[r.IntN(7)])
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		v.SetUint(r.Uint64() >> r.IntN(64))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64())
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		r.fill(p.Elem(), depth+1)
		v.Set(p)
	case reflect.Slice:
		n := r.IntN(4)
		list := reflect.MakeSlice(v.Type(), n, n)
		for i := range n {
			r.fill(list.Index(i), depth+1)
		}
		v.Set(list)
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		for range r.IntN(4) {
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
	at := time.Unix(r.Int64N(1<<32), 0)
	var made any
	switch v.Interface().(type) {
	case metav1.Time:
		made = metav1.NewTime(at)
	case metav1.MicroTime:
		made = metav1.NewMicroTime(at.Add(time.Duration(r.IntN(1e6)) * time.Microsecond))
	case resource.Quantity:
		made = resource.MustParse([...]string{"0", "100m", "1.5Gi", "12e6", "-7", "9223372036854775807Ki"}[r.IntN(6)])
	case intstr.IntOrString:
		made = intstr.FromString("http")
		if r.IntN(2) == 0 {
			made = intstr.FromInt32(8080)
		}
	default:
		return false
	}
	v.Set(reflect.ValueOf(made))
	return true
}

func (r *filler) text() string {
	switch r.IntN(8) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%0*d", r.IntN(200), r.Int64())
	}
	return [...]string{"web", "app.kubernetes.io/name", "é\xff\x00", "some value of the usual length"}[r.IntN(4)]
}
