// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"github.com/steer-dev/steer/internal/jsontext"
)

// SetOf returns the fields that a configuration sets. false means that it is left to the
// library, for example because a field is not of its type or two elements have one label.
//
//steer:fast comparison
func SetOf(n *Type, configuration Object) (*Tree, bool) {
	if n == nil || !n.object || n.wholeObject {
		return nil, false
	}
	t, last := newTree(16), int32(0)
	for i := range configuration {
		r := configuration[i].Value.Reader()
		next, ok := t.markMember(n, 0, last, configuration[i].Name, &r, owned, false)
		if !ok {
			return nil, false
		}
		last = next
	}
	return t, true
}

// markMember marks a member of an object after its last sibling, and returns which is the last
// one then; the reader is at its value.
func (t *Tree) markMember(n *Type, at, last int32, name string, r *jsontext.Reader, as mark, parents bool) (int32, bool) {
	label, of, declared := n.field(name)
	if of == nil || !jsontext.PlainText(name) {
		return last, false
	}
	here := t.grow(at, last, label)
	if !t.mark(of, here, r, as, parents) {
		return last, false
	}
	b := &t.branches[here]
	if !declared {
		b.mark = as
	}
	if b.mark == unmarked && b.child == 0 { // a list without elements
		t.cut(at, last, here)
		return last, true
	}
	return here, true
}

// mark marks a branch and what is below it, the value that the reader is at, which it consumes:
// scalars, nulls, atomic values, objects without members and elements of lists; with parents
// objects and lists themselves, too.
func (t *Tree) mark(n *Type, at int32, r *jsontext.Reader, as mark, parents bool) (ok bool) {
	kind := r.Kind()
	whole := parents || kind != '{' && kind != '[' || kind == '{' && n.wholeObject || kind == '[' && n.wholeList
	if whole {
		t.branches[at].mark = as
	}
	switch {
	case kind == 'n':
		r.Skip()
		return n.sole() != otherType
	case kind == '{' && n.object && !n.wholeObject:
		last, empty := int32(0), true
		for name, more := r.Member(); more; name, more = r.Member() {
			if last, ok = t.markMember(n, at, last, name, r, as, parents); !ok {
				return false
			}
			empty = false
		}
		if empty {
			t.branches[at].mark = as
		}
		return true
	case kind == '[' && n.list && !n.wholeList:
		list := r.Take()
		return parents && list == "[]" || t.markElements(n, at, list, as, parents)
	}
	return n.takes(r)
}

// markElements marks the elements of an associative list below a branch.
func (t *Tree) markElements(n *Type, at int32, list jsontext.Text, as mark, parents bool) bool {
	elements, ok := n.elements(list)
	if !ok || !sortElements(elements) {
		return false
	}
	last := int32(0)
	for i := range elements {
		last = t.grow(at, last, elements[i].label)
		r := elements[i].value.Reader()
		if !t.mark(n.items, last, &r, as, parents) {
			return false
		}
		t.branches[last].mark = as
	}
	return true
}

// Contains reports whether a set has all fields of another one; false if that is not certain.
func (t *Tree) Contains(other *Tree) bool { return t.containsAt(0, other, 0) }

func (t *Tree) containsAt(at int32, other *Tree, otherAt int32) bool {
	i := t.branches[at].child
	for j := other.branches[otherAt].child; j != 0; j = other.branches[j].next {
		for i != 0 && t.branches[i].label != other.branches[j].label {
			i = t.branches[i].next
		}
		if i == 0 || other.branches[j].mark == owned && t.branches[i].mark != owned || !t.containsAt(i, other, j) {
			return false
		}
	}
	return true
}

// Conflicts returns the paths of the fields of a set that a write adds or modifies, as
// kube-apiserver names them.
func (t *Tree) Conflicts(changes *Tree) ([]string, bool) {
	return t.conflictsAt(0, changes, 0, "", nil)
}

func (t *Tree) conflictsAt(at int32, changes *Tree, changesAt int32, path string, out []string) (_ []string, ok bool) {
	type pair struct {
		path         string
		mine, theirs int32
	}
	var deeper []pair
	for i, j := t.branches[at].child, changes.branches[changesAt].child; i != 0 && j != 0; {
		mine, theirs := &t.branches[i], &changes.branches[j]
		order, ok := compareLabels(mine.label, theirs.label)
		switch {
		case !ok:
			return nil, false
		case order < 0:
			i = mine.next
			continue
		case order > 0:
			j = theirs.next
			continue
		}
		here := path + pathOf(mine.label)
		if mine.mark == owned && (theirs.mark == added || theirs.mark == modified) {
			out = append(out, here)
		}
		if mine.child != 0 && theirs.child != 0 {
			deeper = append(deeper, pair{here, i, j})
		}
		i, j = mine.next, theirs.next
	}
	for _, p := range deeper { // after the fields of this level
		if out, ok = t.conflictsAt(p.mine, changes, p.theirs, p.path, out); !ok {
			return nil, false
		}
	}
	return out, true
}
