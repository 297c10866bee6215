// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package declared applies the validation rules that Kubernetes declares with +k8s: markers in
// the types of its API (KEP-5073): those that are in force in the served minor, which are the
// ones without a stage and those of stage beta. They are data, extracted from the sources of
// the API with the other markers; the errors have the words of k8s.io/apimachinery.
package declared

import (
	"reflect"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules is what is declared of a type. It is immutable.
type Rules struct{ plan *plan }

// memo has the rules of types that were asked for, which all control planes of a process share:
// those of a Pod take half a millisecond to work out.
var memo sync.Map // reflect.Type to *Rules

// Of returns what is declared of a struct type of the API; nil if nothing is. It panics where a
// rule is not known to this package.
func Of(t reflect.Type) *Rules {
	if known, ok := memo.Load(t); ok {
		return known.(*Rules)
	}
	var rules *Rules
	if p := (compiler{plans: map[reflect.Type]*plan{}}).plan(t); p != nil {
		rules = &Rules{p}
	}
	known, _ := memo.LoadOrStore(t, rules)
	return known.(*Rules)
}

// Validate returns the errors of an object, a pointer to the struct. old is the object that it
// replaces, or nil: what did not change is not validated again.
func (r *Rules) Validate(obj, old any) field.ErrorList {
	if r == nil {
		return nil
	}
	w, was := walk{operation.Operation{Type: operation.Create}}, reflect.Value{}
	if old != nil {
		w.op.Type = operation.Update
		was = reflect.ValueOf(old).Elem()
	}
	return w.inside(r.plan, reflect.ValueOf(obj).Elem(), was)
}

// walk validates one object. Errors have the path from the value to what is wrong in it, which
// grows on the way out, so that an object without errors costs no memory.
type walk struct{ op operation.Operation }

// update reports whether a value replaces another one.
func (w walk) update(old reflect.Value) bool { return w.op.Type == operation.Update && old.IsValid() }

// value validates the value of a field, or an element or a key that has rules of its own. old
// is the value before, not valid if there is none.
func (w walk) value(s *site, v, old reflect.Value) field.ErrorList {
	absent := isAbsent(v)
	if w.update(old) && s.compared && (absent && isAbsent(old) || same(v, old)) {
		return nil
	}
	errs := w.apply(s.first, v, old)
	if len(errs) > 0 || s.optional && absent {
		return errs
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v, old = v.Elem(), pointee(old)
	}
	errs = append(w.apply(s.rules, v, old), w.members(s.below, v, old)...)
	switch v.Kind() {
	case reflect.Slice:
		errs = append(errs, w.elements(s, v, old)...)
	case reflect.Map:
		errs = append(errs, w.entries(s, v, old)...)
	}
	if s.plan != nil {
		errs = append(errs, w.inside(s.plan, v, old)...)
	}
	return errs
}

func (w walk) apply(rules []rule, v, old reflect.Value) (errs field.ErrorList) {
	for _, r := range rules {
		for _, err := range r(w.op, v, old) {
			err.Field = ""
			errs = append(errs, err)
		}
	}
	return errs
}

// elements validates those of a list.
func (w walk) elements(s *site, v, old reflect.Value) (errs field.ErrorList) {
	if s.unique {
		seen := make(map[string]bool, v.Len())
		for i := range v.Len() {
			id := s.identity(v.Index(i))
			if seen[id] {
				err := field.Duplicate(nil, v.Index(i).Interface())
				err.Field = index(i)
				errs = append(errs, err)
			}
			seen[id] = true
		}
	}
	if s.element == nil {
		return errs
	}
	before := s.byIdentity(old)
	for i := range v.Len() {
		var was reflect.Value
		if before != nil {
			was = before[s.identity(v.Index(i))]
		}
		if found := w.value(s.element, v.Index(i), was); len(found) > 0 {
			errs = append(errs, below(index(i), found)...)
		}
	}
	return errs
}

// entries validates keys, which have the path of their map, and values.
func (w walk) entries(s *site, v, old reflect.Value) (errs field.ErrorList) {
	if s.key == nil && s.element == nil {
		return nil
	}
	for _, key := range sortedKeys(v) {
		var was reflect.Value
		if old.IsValid() {
			was = old.MapIndex(key)
		}
		if s.key != nil && !w.update(was) {
			errs = append(errs, w.value(s.key, key, reflect.Value{})...)
		}
		if s.element != nil {
			if found := w.value(s.element, v.MapIndex(key), was); len(found) > 0 {
				errs = append(errs, below("["+key.String()+"]", found)...)
			}
		}
	}
	return errs
}

// inside validates by what is declared of a type, and of the fields of a struct.
func (w walk) inside(p *plan, v, old reflect.Value) field.ErrorList {
	return append(w.apply(p.rules, v, old), w.members(p.fields, v, old)...)
}

func (w walk) members(list []member, v, old reflect.Value) (errs field.ErrorList) {
	for i := range list {
		m := &list[i]
		var was reflect.Value
		if old.IsValid() {
			was = old.Field(m.index)
		}
		if m.name == "" {
			errs = append(errs, w.inside(m.plan, v.Field(m.index), was)...)
		} else {
			errs = append(errs, below(m.name, w.value(&m.site, v.Field(m.index), was))...)
		}
	}
	return errs
}

// below puts a step before the paths of errors.
func below(step string, errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		if err.Field == "" || err.Field[0] == '[' {
			err.Field = step + err.Field
		} else {
			err.Field = step + "." + err.Field
		}
	}
	return errs
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// isAbsent reports whether a value counts as not given: no element, a nil pointer, a zero.
func isAbsent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

func pointee(v reflect.Value) reflect.Value {
	if !v.IsValid() || v.IsNil() {
		return reflect.Value{}
	}
	return v.Elem()
}

func same(a, b reflect.Value) bool { return equality.Semantic.DeepEqual(a.Interface(), b.Interface()) }
