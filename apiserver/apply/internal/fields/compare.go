// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"slices"

	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// side of a pair on which a value exists.
type side byte

const (
	left  side = '-'
	right side = '+'
	both  side = '='
)

// jsonType is the type of a JSON value.
type jsonType uint8

const (
	null jsonType = iota
	scalarForm
	listForm
	objectForm
	otherType // not compared here
)

func typeOf(value any) jsonType {
	switch v := value.(type) {
	case nil:
		return null
	case map[string]any:
		if v != nil {
			return objectForm
		}
	case []any:
		if v != nil {
			return listForm
		}
	case string, bool, int64:
		return scalarForm
	case wire.Text:
		return typeOfRaw(v)
	}
	return otherType
}

// Compare returns the changes from one object to another, both decoded JSON whose
// members may be raw. false means that the comparison is left to the library, for
// example because a value is not of its type.
//
//steer:fast comparison
func Compare(n *Type, before, after map[string]any) (*Tree, bool) {
	t := newTree(8)
	return t, t.members(n, 0, both, before, after)
}

// compare marks below a branch the differences between two values of a type, of which a
// write may have removed (left) or added (right) one. false as for [Compare].
func (t *Tree) compare(n *Type, at int32, where side, a, b any) bool {
	if n == nil {
		return false
	}
	formA, formB := typeOf(a), typeOf(b)
	form := formA
	switch {
	case where == left:
	case where == right:
		form = formB
	case formA == null:
		form = formB
		fallthrough
	case formB == null:
		if n.sole() == otherType {
			return false
		}
	case formA != formB:
		return false
	}
	if form == null {
		form = n.sole()
	}
	switch form {
	case scalarForm:
		if n.scalar == "" || formA != null && !n.Holds(a) || formB != null && !n.Holds(b) {
			return false
		}
		return t.leaf(at, where, a, b)
	case listForm:
		return n.list && t.compareLists(n, at, where, a, b)
	case objectForm:
		return n.object && t.compareObjects(n, at, where, a, b)
	}
	return false
}

// sideOf returns the sides on which members exist of which at least one does.
func sideOf(where side, inA, inB bool) side {
	switch {
	case where == both && !inA:
		return right
	case where == both && !inB:
		return left
	}
	return where
}

// leaf marks an atomic value.
func (t *Tree) leaf(at int32, where side, a, b any) bool {
	if where != both {
		return t.whole(at, where)
	}
	if !wire.Equal(a, b) {
		t.branches[at].mark = modified
	}
	return true
}

// whole marks a value that exists on one side only.
func (t *Tree) whole(at int32, where side) bool {
	switch where {
	case left:
		t.branches[at].mark = removed
	case right:
		t.branches[at].mark = added
	case both:
	}
	return true
}

func (t *Tree) compareObjects(n *Type, at int32, where side, a, b any) bool {
	if x, y, ok := rawPair(where, a, b); ok {
		return t.compareRawObjects(n, at, where, x, y)
	}
	old, _ := wire.DecodeValue(a).(map[string]any)
	wished, _ := wire.DecodeValue(b).(map[string]any)
	if n.wholeObject {
		return (old == nil || n.fits(old)) && (wished == nil || n.fits(wished)) && t.leaf(at, where, a, b)
	}
	if len(old) == 0 && len(wished) == 0 {
		return t.leaf(at, where, a, b)
	}
	return t.members(n, at, where, old, wished) && t.whole(at, where)
}

// growField adds the branch of a field.
func (t *Tree) growField(parent, last int32, name string) int32 {
	at := t.grow(parent, last, "f:"+name)
	if parent == 0 && name == "metadata" {
		t.metadata = at
	}
	return at
}

// isManagedFields reports whether a field is metadata.managedFields, which no manager
// owns.
func (t *Tree) isManagedFields(parent int32, name string) bool {
	return parent != 0 && parent == t.metadata && name == "managedFields"
}

// members compares the fields of two objects.
func (t *Tree) members(n *Type, at int32, where side, a, b map[string]any) bool {
	var few [32]string
	names := few[:0]
	for name, value := range a {
		if other, inBoth := b[name]; !inBoth || !wire.Equal(value, other) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, inBoth := a[name]; !inBoth {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	last := int32(0)
	for _, name := range names {
		if t.isManagedFields(at, name) {
			continue
		}
		if !typed.PlainText(name) {
			return false
		}
		valueA, inA := a[name]
		valueB, inB := b[name]
		last = t.growField(at, last, name)
		if !t.compare(n.Field(name), last, sideOf(where, inA, inB), valueA, valueB) {
			return false
		}
	}
	return true
}

func (t *Tree) compareLists(n *Type, at int32, where side, a, b any) bool {
	hasA, hasB := typeOf(a) == listForm, typeOf(b) == listForm
	switch {
	case n.wholeList:
		return (!hasA || n.fits(a)) && (!hasB || n.fits(b)) && t.leaf(at, where, a, b)
	case isEmpty(a) && isEmpty(b):
		return t.leaf(at, where, a, b)
	}
	elementsA, ok := n.elements(a)
	if !ok {
		return false
	}
	elementsB, ok := n.elements(b)
	if !ok || !sortElements(elementsA) || !sortElements(elementsB) {
		return false
	}
	last := int32(0)
	for len(elementsA) > 0 || len(elementsB) > 0 {
		var order int
		switch {
		case len(elementsA) == 0:
			order = 1
		case len(elementsB) == 0:
			order = -1
		default:
			if order, ok = compareLabels(elementsA[0].label, elementsB[0].label); !ok {
				return false
			}
		}
		var x, y element
		if order <= 0 {
			x, elementsA = elementsA[0], elementsA[1:]
		}
		if order >= 0 {
			y, elementsB = elementsB[0], elementsB[1:]
		}
		if order == 0 && wire.Equal(x.value, y.value) {
			continue
		}
		label := x.label
		if order > 0 {
			label = y.label
		}
		last = t.grow(at, last, label)
		if !t.compare(n.items, last, sideOf(where, order <= 0, order >= 0), x.value, y.value) {
			return false
		}
	}
	return t.whole(at, where)
}
