// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"strings"

	"github.com/steer-dev/steer/internal/jsontext"
)

// Drop returns an object without the fields and elements of last, what a manager applied before,
// that no set owns any more; managed is the union of all sets, that of the new configuration
// included. false means that it is left to the library.
//
// A field stays if it, or what it is a part of, is in managed; so does a field that is not in
// last itself. Of an object or a list that loses all its members a null remains.
//
//steer:fast comparison
func Drop(n *Type, object Object, last, managed *Tree) (Object, bool) {
	d := dropping{last: last, managed: managed}
	inLast, inManaged := last.children(0), managed.children(0)
	out := make(Object, 0, len(object))
	for _, m := range object {
		label, of, declared := n.field(m.Name)
		if inLast[label] == 0 {
			out = append(out, m)
			continue
		}
		if strings.Contains(string(m.Value), "[]") {
			return nil, false // no set has a list without elements, nor what has but those in it
		}
		at, dropped, ok := d.enter(place{}, of, inLast[label], inManaged[label], declared)
		if !ok {
			return nil, false
		}
		if dropped {
			continue
		}
		rest, ok := d.value(make([]byte, 0, len(m.Value)), of, m.Value, at)
		if !ok {
			return nil, false
		}
		out = append(out, Member{m.Name, jsontext.Text(rest)})
	}
	return out, true
}

// dropping is what [Drop] does.
type dropping struct{ last, managed *Tree }

// place is a value that Drop visits.
type place struct {
	last, managed int32 // its branches; 0 for none
	// covered is set if it is part of something that was applied before, gone if it is part of
	// something that was, and that no manager owns now.
	covered, gone bool
}

// enter moves to a member or an element and reports whether it is dropped. named is set if the
// type declares the member: then sets that have a part of it have it, too.
func (d *dropping) enter(in place, n *Type, last, managed int32, named bool) (at place, dropped, ok bool) {
	if n == nil {
		return at, false, false
	}
	at = in
	at.last, at.managed = last, managed
	inLast := last != 0 && (named || d.last.branches[last].mark == owned)
	inManaged := managed != 0 && (named || d.managed.branches[managed].mark == owned)
	at.covered = at.covered || inLast
	at.gone = at.gone || at.covered && !inManaged
	return at, at.gone && inLast, true
}

// value appends a value without what is dropped below it.
func (d *dropping) value(out []byte, n *Type, value jsontext.Text, at place) ([]byte, bool) {
	if at.last == 0 || d.last.branches[at.last].child == 0 {
		return append(out, value...), true
	}
	switch form := typeOf(value); {
	case form == objectForm && value != "{}" && n.object && !n.wholeObject:
		return d.object(out, n, value, at)
	case form == listForm && value != "[]" && n.list && !n.wholeList:
		return d.list(out, n, value, at)
	}
	return append(out, value...), true
}

func (d *dropping) object(out []byte, n *Type, object jsontext.Text, in place) ([]byte, bool) {
	inLast, inManaged := d.last.children(in.last), d.managed.childrenOf(in.managed)
	out = append(out, '{')
	begin := len(out)
	r := object.Reader()
	for name, more := r.Member(); more; name, more = r.Member() {
		value := r.Take()
		label, of, declared := n.field(name)
		at, dropped, ok := d.enter(in, of, inLast[label], inManaged[label], declared)
		if !ok {
			return out, false
		}
		if dropped {
			continue
		}
		out = jsontext.AppendName(out, begin, name)
		if out, ok = d.value(out, of, value, at); !ok {
			return out, false
		}
	}
	if len(out) == begin {
		return append(out[:begin-1], "null"...), true
	}
	return append(out, '}'), true
}

func (d *dropping) list(out []byte, n *Type, list jsontext.Text, in place) ([]byte, bool) {
	elements, ok := n.elements(list)
	if !ok {
		return out, false
	}
	if _, unique := partners(nil, elements); !unique {
		return out, false
	}
	inLast, inManaged := d.last.children(in.last), d.managed.childrenOf(in.managed)
	out = append(out, '[')
	begin := len(out)
	for _, e := range elements {
		at, dropped, ok := d.enter(in, n.items, inLast[e.label], inManaged[e.label], false)
		if !ok {
			return out, false
		}
		if dropped {
			continue
		}
		if len(out) > begin {
			out = append(out, ',')
		}
		if out, ok = d.value(out, n.items, e.value, at); !ok {
			return out, false
		}
	}
	if len(out) == begin {
		return append(out[:begin-1], "null"...), true
	}
	return append(out, ']'), true
}

// children returns the branches below one by their labels.
func (t *Tree) children(at int32) map[string]int32 {
	out := map[string]int32{}
	for i := t.branches[at].child; i != 0; i = t.branches[i].next {
		out[t.branches[i].label] = i
	}
	return out
}

// childrenOf is children for a branch that may be 0 for none.
func (t *Tree) childrenOf(at int32) map[string]int32 {
	if at == 0 {
		return nil
	}
	return t.children(at)
}
