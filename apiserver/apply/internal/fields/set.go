// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"maps"
	"slices"

	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// SetOf returns the fields that a configuration, whose members are text, sets. false means that it is left to the
// library, for example because a field is not of its type or two elements have one label.
//
//steer:fast comparison
func SetOf(n *Type, configuration map[string]any) (*Tree, bool) {
	if n == nil || !n.object || n.wholeObject {
		return nil, false
	}
	t := newTree(16)
	last := int32(0)
	for _, name := range slices.Sorted(maps.Keys(configuration)) {
		value, ok := configuration[name].(wire.Text)
		if !ok {
			return nil, false
		}
		if last, ok = t.addMember(n, 0, last, name, value); !ok {
			return nil, false
		}
	}
	return t, true
}

// addMembers adds the fields of an object below a branch.
func (t *Tree) addMembers(n *Type, at int32, object wire.Text) (ok bool) {
	last := int32(0)
	r := object.Reader()
	for name, more := r.Member(); more; name, more = r.Member() {
		if last, ok = t.addMember(n, at, last, name, r.Take()); !ok {
			return false
		}
	}
	return true
}

// addMember adds a member of an object after its last sibling, and returns which is the last one
// then.
func (t *Tree) addMember(n *Type, at, last int32, name string, value wire.Text) (int32, bool) {
	field := n.Field(name)
	if field == nil || !typed.PlainText(name) {
		return last, false
	}
	_, named := n.fields[name]
	here := t.grow(at, last, "f:"+name)
	if !t.addValue(field, here, value) {
		return last, false
	}
	b := &t.branches[here]
	if !named || value == "null" || value == "{}" {
		b.mark = owned
	}
	if b.mark == unmarked && b.child == 0 { // a list without elements
		t.cut(at, last, here)
		return last, true
	}
	return here, true
}

// addValue adds a value that is set at a branch.
func (t *Tree) addValue(n *Type, at int32, value wire.Text) bool {
	switch typeOfRaw(value) {
	case null:
		return n.sole() != otherType
	case scalarForm:
		t.branches[at].mark = owned
		return n.holdsRaw(value)
	case objectForm:
		if !n.object {
			return false
		}
		if n.wholeObject {
			t.branches[at].mark = owned
			return n.fitsRaw(value)
		}
		return t.addMembers(n, at, value)
	case listForm:
		if n.list && n.wholeList {
			t.branches[at].mark = owned
			return n.fitsRaw(value)
		}
		return n.list && t.addElements(n, at, value)
	case otherType:
	}
	return false
}

// addElements adds the elements of an associative list below a branch.
func (t *Tree) addElements(n *Type, at int32, list wire.Text) bool {
	elements, ok := n.elements(list)
	if !ok || !sortElements(elements) {
		return false
	}
	last := int32(0)
	for _, e := range elements {
		value, _ := e.value.(wire.Text)
		last = t.grow(at, last, e.label)
		if !t.addValue(n.items, last, value) {
			return false
		}
		t.branches[last].mark = owned
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
