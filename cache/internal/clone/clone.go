// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clone makes private copies of objects, equal to those of DeepCopyObject,
// with fewer allocations: what a kind's objects are made of is worked out once, what a
// copy needs is counted first, and then allocated in a block for each sort of memory.
//
// No part of a copy can be reached from the original or from another part: lists have no
// room to grow. A block lives as long as one of its parts: who keeps a container of a
// Pod keeps the memory of the others, as who keeps an item of a list keeps the list.
//
// Only the Go types of k8s.io/api and k8s.io/apimachinery are copied so, whose DeepCopy
// is generated and does nothing else; others copy themselves.
package clone

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// plans are by the type that pointers to objects point to.
var plans sync.Map // reflect.Type to *plan

// plan is how the objects of a type are copied.
type plan struct {
	layout *layout   // nil if they copy themselves
	spaces sync.Pool // of *space
}

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{}
	if t.Kind() == reflect.Struct {
		c := newCompiler()
		p.layout = c.layout(t)
		units := c.units
		p.spaces.New = func() any { return newSpace(units) }
	}
	known, _ := plans.LoadOrStore(t, p)
	return known.(*plan)
}

// Into makes *to, a pointer of from's type, a copy of *from.
func Into(to, from runtime.Object) {
	p := planOf(reflect.TypeOf(from).Elem())
	if p.layout == nil {
		set(to, from.DeepCopyObject())
		return
	}
	s := p.spaces.Get().(*space)
	source := reflect.ValueOf(from).UnsafePointer()
	s.count(p.layout, source, 1)
	s.allocate()
	target := reflect.ValueOf(to)
	target.Elem().SetZero()
	s.copy(p.layout, target.UnsafePointer(), source, 1)
	s.clear()
	p.spaces.Put(s)
}

// Of is a copy of obj.
func Of[T runtime.Object](obj T) T {
	if p := planOf(reflect.TypeOf(obj).Elem()); p.layout == nil {
		return obj.DeepCopyObject().(T)
	}
	to := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
	Into(to, obj)
	return to
}

// together is how many objects of a list share blocks.
const together = 8

// All makes each *to[i], a pointer of the type of from[i], a copy of *from[i]. All from are
// of one type.
func All[T runtime.Object](to, from []T) {
	if len(from) == 0 {
		return
	}
	p := planOf(reflect.TypeOf(from[0]).Elem())
	if p.layout == nil {
		for i := range from {
			set(to[i], from[i].DeepCopyObject())
		}
		return
	}
	s := p.spaces.Get().(*space)
	for len(from) > 0 {
		n := min(together, len(from))
		for _, obj := range from[:n] {
			s.count(p.layout, reflect.ValueOf(obj).UnsafePointer(), 1)
		}
		s.allocate()
		for i, obj := range from[:n] {
			target := reflect.ValueOf(to[i])
			target.Elem().SetZero()
			s.copy(p.layout, target.UnsafePointer(), reflect.ValueOf(obj).UnsafePointer(), 1)
		}
		s.clear()
		to, from = to[n:], from[n:]
	}
	p.spaces.Put(s)
}

func set(to, from runtime.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
}
