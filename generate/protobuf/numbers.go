// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package protobuf

import (
	"cmp"
	"maps"
	"slices"
)

// valid reports whether protobuf allows the number of a field.
func valid(number int) bool {
	return number >= 1 && number < 1<<29 && (number < 19000 || number > 19999)
}

func contains(names []string, name string) bool {
	_, found := slices.BinarySearch(names, name)
	return found
}

// number gives the fields of a message their numbers, and sorts them. before is the message
// in the committed generated.proto, nil if it is new.
func (b *builder) number(m *message, before *declared) {
	if before == nil {
		before = &declared{}
	}
	b.keep(m, before)
	used, names := map[int]*field{}, map[string]*field{}
	highest := 0
	for _, f := range m.fields {
		if other := used[f.number]; other != nil && f.number != 0 {
			b.program.Problemf(f.pos, "fields %s and %s of %s have the number %d: give one of them another", other.goName, f.goName, m.name, f.number)
		}
		if other := names[f.name]; other != nil {
			b.program.Problemf(f.pos, "fields %s and %s of %s have the name %s in protobuf: give one of them another with a tag, protobuf:\"%s,NUMBER,opt,name=NAME\"", other.goName, f.goName, m.name, f.name, f.encoding())
		}
		used[f.number], names[f.name] = f, f
		highest = max(highest, f.number)
	}
	m.reserved, m.reservedNames = slices.Clone(before.reserved), slices.Clone(before.reservedNames)
	for _, name := range slices.Sorted(maps.Keys(before.fields)) {
		was := before.fields[name]
		highest = max(highest, was.number)
		if used[was.number] == nil {
			m.reserved = append(m.reserved, was.number)
			if names[name] == nil {
				m.reservedNames = append(m.reservedNames, name)
			}
		}
	}
	for _, number := range m.reserved {
		highest = max(highest, number)
	}
	slices.Sort(m.reserved)
	slices.Sort(m.reservedNames)
	m.reserved, m.reservedNames = slices.Compact(m.reserved), slices.Compact(m.reservedNames)
	for _, f := range m.fields {
		if f.number != 0 {
			continue
		}
		for highest++; !valid(highest); highest++ {
			if highest >= 1<<29 {
				b.program.Problemf(f.pos, "field %s.%s: all numbers are taken", m.name, f.goName)
				return
			}
		}
		f.number = highest
	}
	slices.SortStableFunc(m.fields, func(a, b *field) int { return cmp.Compare(a.number, b.number) })
	b.isList(m)
}

// keep gives fields the numbers that they had before, and reports those that would mean
// something else to programs that have read them before.
func (b *builder) keep(m *message, before *declared) {
	names := map[int]string{} // before
	for name, was := range before.fields {
		names[was.number] = name
	}
	for _, f := range m.fields {
		was, known := before.fields[f.name]
		form := was.form
		switch {
		case known && f.number != 0 && f.number != was.number:
			b.program.Problemf(f.pos, "field %s.%s has the number %d in its tag and %d in %s: programs that were built before use that one; correct the tag", m.name, f.goName, f.number, was.number, protoFile)
			continue
		case known:
			f.number = was.number
		case slices.Contains(before.reservedNames, f.name):
			b.program.Problemf(f.pos, "field %s.%s has the name of a field that was removed: choose another name, or delete the name and its number from reserved in %s if nothing uses it any more", m.name, f.goName, protoFile)
			continue
		case f.number == 0:
			continue
		case slices.Contains(before.reserved, f.number):
			b.program.Problemf(f.pos, "field %s.%s has the number %d, which was that of a field that was removed: choose another number", m.name, f.goName, f.number)
			continue
		default: // the tag may give a field another name
			form = before.fields[names[f.number]].form
		}
		if form != "" && form != f.form() {
			b.program.Problemf(f.pos, "field %s.%s has the number %d, which is %q in %s and would be %q: programs that were built before would misread it; give the field another name and number", m.name, f.goName, f.number, form, protoFile, f.form())
		}
	}
}

// isList reports a list of objects whose fields have other numbers than in the lists of
// Kubernetes: servers write lists without their Go type.
func (b *builder) isList(m *message) {
	for i, name := range []string{"ListMeta", "Items"} {
		at := slices.IndexFunc(m.fields, func(f *field) bool { return f.goName == name })
		if at < 0 {
			return
		}
		if i == 0 && !isListMeta(m.fields[at]) {
			return
		}
		if f := m.fields[at]; f.number != i+1 {
			b.program.Problemf(f.pos, "field %s.%s has the number %d: in lists of objects, ListMeta has the number 1 and Items the number 2", m.name, name, f.number)
		}
	}
}

func isListMeta(f *field) bool {
	return f.value.proto == "k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta"
}
