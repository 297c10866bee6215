// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// defaultMost is how many paths a [Differ] names before it stops looking.
const defaultMost = 4

// Differ names the fields in which two versions of an object differ. It keeps
// one plan per Go type, so share one Differ. The zero value is ready; it is safe
// for concurrent use.
type Differ struct {
	// Without is a field of the object that is left out as well, "status" for
	// instance.
	Without string
	// Most is how many paths are named at most; 0 means 4.
	Most int

	plans sync.Map // reflect.Type to *plan
}

// Changed returns the paths of the fields that differ, joined by commas, in the
// order of the type: "spec.replicas,metadata.labels[app]". It names at most
// d.Most and ends the list with "..." when there are more. Resource version,
// generation and managed fields are left out, since they change with everything
// else. Both values must be of one type: pointers to structs, or unstructured
// objects. Anything else has no paths. It never holds a value.
func (d *Differ) Changed(before, after any) string {
	if d.Same(before, after) {
		return ""
	}
	walk := walk{differ: d, most: cmp.Or(d.Most, defaultMost)}
	if a, ok := content(before); ok {
		b, ok := content(after)
		if !ok {
			return ""
		}
		walk.value(reflect.ValueOf(a), reflect.ValueOf(b))
		return strings.Join(walk.paths, ",")
	}
	a, b := reflect.ValueOf(before), reflect.ValueOf(after)
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return ""
	}
	walk.value(a, b)
	return strings.Join(walk.paths, ",")
}

// Same reports whether both values are the same in all but d.Without. Where
// one thing has several forms, as an empty and a missing list, it may say that
// they are not. The values are as for Changed.
func (d *Differ) Same(before, after any) bool {
	if a, ok := content(before); ok {
		b, ok := content(after)
		return ok && sameContents(a, b, d.Without)
	}
	return d.sameStructs(reflect.ValueOf(before), reflect.ValueOf(after))
}

// sameContents compares the fields of two unstructured objects, without one of them.
func sameContents(a, b map[string]any, without string) bool {
	fields := 0
	for name, x := range a {
		if name == without {
			continue
		}
		y, ok := b[name]
		if !ok || !reflect.DeepEqual(x, y) {
			return false
		}
		fields++
	}
	others := len(b)
	if _, ok := b[without]; ok {
		others--
	}
	return fields == others
}

// sameStructs compares what two pointers to structs of one type lead to, without one
// of the fields.
func (d *Differ) sameStructs(a, b reflect.Value) bool {
	if a.Kind() != reflect.Pointer || b.Kind() != reflect.Pointer || a.Type() != b.Type() {
		return false
	}
	if a.Type().Elem().Kind() != reflect.Struct || a.IsNil() || b.IsNil() {
		return false
	}
	if a.Pointer() == b.Pointer() {
		return true
	}
	a, b = a.Elem(), b.Elem()
	for _, f := range d.plan(a.Type()).fields {
		if f.name != "" && f.name == d.Without {
			continue
		}
		if !reflect.DeepEqual(a.Field(f.index).Addr().Interface(), b.Field(f.index).Addr().Interface()) {
			return false
		}
	}
	return true
}

// content returns the fields of an unstructured object.
func content(object any) (map[string]any, bool) {
	if v := reflect.ValueOf(object); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, false
	}
	u, ok := object.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return nil, false
	}
	return u.UnstructuredContent(), true
}

// firstFields cuts every path of a list at its first field.
func firstFields(list string) string {
	if list == "" {
		return ""
	}
	var out string
	for path := range strings.SplitSeq(list, ",") {
		if i := strings.IndexAny(path, ".["); i > 0 && path[0] != '.' {
			path = path[:i]
		}
		out = mergePaths(out, path)
	}
	return out
}

// plan says how values of one struct type are compared.
type plan struct {
	// opaque values write their own JSON and are compared by it when they are
	// not deeply equal: times, quantities, raw extensions.
	opaque bool
	fields []field
}

type field struct {
	index int
	name  string // empty for an inlined struct
}

func (d *Differ) plan(t reflect.Type) *plan {
	if p, ok := d.plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{}
	marshaler := reflect.TypeFor[json.Marshaler]()
	p.opaque = t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" && !f.Anonymous {
			name = f.Name
		}
		p.fields = append(p.fields, field{i, name})
	}
	stored, _ := d.plans.LoadOrStore(t, p)
	return stored.(*plan)
}

// walk is one comparison: the path to the values at hand, and the paths found.
type walk struct {
	differ *Differ
	most   int
	at     []step
	paths  []string
}

// step is one part of a path: a field, a key of a map, or an index.
type step struct {
	name  string
	index int
	kind  stepKind
}

type stepKind uint8

const (
	stepField stepKind = iota
	stepKey
	stepIndex
)

func (w *walk) path() string {
	var b strings.Builder
	for i, s := range w.at {
		switch s.kind {
		case stepField:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		case stepKey:
			b.WriteString("[" + s.name + "]")
		case stepIndex:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		}
	}
	return b.String()
}

// full reports that no more paths are wanted.
func (w *walk) full() bool { return len(w.paths) > w.most }

// differs notes the path at hand.
func (w *walk) differs() {
	switch {
	case len(w.at) == 0:
	case len(w.paths) == w.most:
		w.paths = append(w.paths, "...")
	default:
		w.paths = append(w.paths, w.path())
	}
}

// below compares two values one step further down.
func (w *walk) below(s step, a, b reflect.Value) {
	w.at = append(w.at, s)
	if !w.skipped() {
		switch {
		case w.full():
		case !a.IsValid() || !b.IsValid():
			w.differs()
		default:
			w.value(a, b)
		}
	}
	w.at = w.at[:len(w.at)-1]
}

// skipped tells the fields that change with everything else.
func (w *walk) skipped() bool {
	if len(w.at) == 1 {
		return w.at[0].name == w.differ.Without
	}
	if len(w.at) != 2 || w.at[0].name != "metadata" {
		return false
	}
	switch w.at[1].name {
	case "resourceVersion", "generation", "managedFields":
		return true
	}
	return false
}

// chosen tells the maps of metadata whose keys users choose.
func (w *walk) chosen() bool {
	return len(w.at) == 2 && w.at[0].name == "metadata" && (w.at[1].name == "labels" || w.at[1].name == "annotations")
}

// value compares two values of one static type.
func (w *walk) value(a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		switch {
		case a.IsNil() || b.IsNil():
			if a.IsNil() != b.IsNil() {
				w.differs()
			}
		case a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer():
		case a.Elem().Type() != b.Elem().Type():
			w.differs()
		default:
			w.value(a.Elem(), b.Elem())
		}
	case reflect.Struct:
		p := w.differ.plan(a.Type())
		if p.opaque {
			if !sameJSON(a.Interface(), b.Interface()) {
				w.differs()
			}
			return
		}
		for _, f := range p.fields {
			if f.name == "" {
				w.value(a.Field(f.index), b.Field(f.index))
				continue
			}
			w.below(step{name: f.name}, a.Field(f.index), b.Field(f.index))
		}
	case reflect.Map:
		w.mapping(a, b)
	case reflect.Slice, reflect.Array:
		w.sequence(a, b)
	default:
		if plain(a.Kind()) && !a.Equal(b) {
			w.differs()
		}
	}
}

// plain values hold no pointers and are compared with ==.
func plain(k reflect.Kind) bool {
	return k == reflect.String || k >= reflect.Bool && k <= reflect.Uint64 || k == reflect.Float32 || k == reflect.Float64
}

func (w *walk) mapping(a, b reflect.Value) {
	if a.Len() == 0 && b.Len() == 0 || a.Pointer() == b.Pointer() {
		return
	}
	if a.Type().Key().Kind() != reflect.String {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			w.differs()
		}
		return
	}
	// Objects without a type are maps all the way down: what looks like a field is one,
	// so that both have the same paths.
	chosen := w.chosen()
	if a.Len() == b.Len() && plain(a.Type().Elem().Kind()) && sameEntries(a, b) {
		return
	}
	keys := make(map[string]reflect.Value, a.Len())
	for _, m := range []reflect.Value{a, b} {
		for _, k := range m.MapKeys() {
			keys[k.String()] = k
		}
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		k := keys[name]
		kind := stepKey
		if !chosen && isFieldName(name) {
			kind = stepField
		}
		w.below(step{name: name, kind: kind}, a.MapIndex(k), b.MapIndex(k))
	}
}

// sameEntries reports whether maps of one length and of plain values are equal: most
// are, and need no order then.
func sameEntries(a, b reflect.Value) bool {
	for entries := a.MapRange(); entries.Next(); {
		if other := b.MapIndex(entries.Key()); !other.IsValid() || !other.Equal(entries.Value()) {
			return false
		}
	}
	return true
}

func (w *walk) sequence(a, b reflect.Value) {
	switch {
	case a.Len() != b.Len():
		w.differs()
	case a.Kind() == reflect.Slice && (a.Len() == 0 || a.Pointer() == b.Pointer()):
	case a.Type().Elem().Kind() == reflect.Uint8:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			w.differs()
		}
	default:
		for i := range a.Len() {
			w.below(step{index: i, kind: stepIndex}, a.Index(i), b.Index(i))
		}
	}
}

func sameJSON(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}
