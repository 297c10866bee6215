// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package declared

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
)

// plan is what is declared of a type, and of the fields below it.
type plan struct {
	rules  []rule
	fields []member // those with something to validate, in the order of the struct
}

// member is a field of a struct.
type member struct {
	index int
	name  string // on the wire; empty for an embedded struct, whose fields are those of the outer one
	site
}

// site is a place of a value: a field, an element of a list, a key or a value of a map.
type site struct {
	// compared says that a value that did not change is not validated. A struct without rules in
	// first is compared field by field instead.
	compared bool
	optional bool     // an absent value is fine, and needs nothing else
	first    []rule   // if one of them has errors, nothing else is validated
	rules    []rule   // of a value that is there; behind a pointer
	below    []member // rules of the field about fields of its value
	plan     *plan    // of its type

	element, key *site
	keys         []string                     // fields by which elements of a list are told apart
	unique       bool                         // no two elements have one identity
	identity     func(v reflect.Value) string // of an element; nil: which one of an old list it was is unknown
}

func (s *site) empty() bool {
	return len(s.first) == 0 && len(s.rules) == 0 && len(s.below) == 0 && s.plan == nil && s.element == nil && s.key == nil && !s.unique
}

// byIdentity has the elements of an old list, the first of each identity; nil if they have none.
func (s *site) byIdentity(old reflect.Value) map[string]reflect.Value {
	if s.identity == nil || !old.IsValid() {
		return nil
	}
	out := make(map[string]reflect.Value, old.Len())
	for i := range old.Len() {
		if id := s.identity(old.Index(i)); !out[id].IsValid() {
			out[id] = old.Index(i)
		}
	}
	return out
}

// compiler makes the plans of a type and of those below it.
type compiler struct{ plans map[reflect.Type]*plan }

// plan returns nil if nothing is declared. A type within itself has a plan.
func (c compiler) plan(t reflect.Type) *plan {
	if known, ok := c.plans[t]; ok {
		return known
	}
	if t.PkgPath() == "" || strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/") {
		return nil // metadata, times and amounts have their rules elsewhere
	}
	p := &plan{}
	c.plans[t] = p
	for _, text := range gotypes.Rules(t, "") {
		p.rules = append(p.rules, typeRule(text))
	}
	if t.Kind() == reflect.Struct {
		p.rules = append(p.rules, unions(t)...)
		for i := range t.NumField() {
			f := t.Field(i)
			m := member{index: i, name: nameOf(f)}
			switch {
			case m.name != "":
				m.site = c.site(f.Type, gotypes.Rules(t, m.name))
			case f.Anonymous:
				m.plan = c.plan(f.Type)
			}
			if !m.empty() {
				p.fields = append(p.fields, m)
			}
		}
	}
	if len(p.rules) == 0 && len(p.fields) == 0 {
		c.plans[t] = nil
		return nil
	}
	return p
}

// nameOf is the name of a field on the wire, empty for one that has none.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || f.Anonymous && name == "" {
		return ""
	}
	return name
}

// site is that of a value of a type with rules of its own.
func (c compiler) site(t reflect.Type, rules []string) site {
	var s site
	for _, text := range rules {
		s.add(t, text)
	}
	switch kind := behind(t).Kind(); {
	case slices.Contains(rules, "opaqueType"):
	case kind == reflect.Slice, kind == reflect.Map:
		inner := c.site(behind(t).Elem(), nil)
		switch {
		case inner.empty():
		case s.element == nil:
			s.element = &inner
		default:
			s.element.plan = inner.plan
		}
	default:
		s.plan = c.plan(behind(t))
	}
	if len(s.keys) > 0 {
		s.identity = ofKeys(behind(t).Elem(), s.keys)
	}
	if slices.Contains(rules, "customUnique") {
		s.unique = false
	}
	s.compared = len(s.first) > 0 || behind(t).Kind() != reflect.Struct
	return s
}

func behind(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// ofKeys is the identity of elements by fields of theirs.
func ofKeys(t reflect.Type, names []string) func(v reflect.Value) string {
	var indexes []int
	for i := range t.NumField() {
		if slices.Contains(names, nameOf(t.Field(i))) {
			indexes = append(indexes, i)
		}
	}
	return func(v reflect.Value) string {
		var id []byte
		for _, i := range indexes {
			id = append(id, itself(v.Field(i))...)
		}
		return string(id)
	}
}

// itself is the identity of a text or a number, which may be behind a pointer.
func itself(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.String:
		return strconv.Quote(v.String())
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return "*" + itself(v.Elem())
	}
	return fmt.Sprintf("(%v)", v.Interface())
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
