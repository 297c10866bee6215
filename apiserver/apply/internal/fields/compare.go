// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"slices"
	"strconv"

	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
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
	case wire.RawValue:
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
		if n.scalar == "" || formA != null && !n.holds(a) || formB != null && !n.holds(b) {
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
		if !t.compare(n.field(name), last, sideOf(where, inA, inB), valueA, valueB) {
			return false
		}
	}
	return true
}

func (t *Tree) compareLists(n *Type, at int32, where side, a, b any) bool {
	if x, y, ok := rawPair(where, a, b); ok && (n.wholeList || len(x) <= len("[]") && len(y) <= len("[]")) {
		return (x == "" || n.fitsRaw(x)) && (y == "" || n.fitsRaw(y)) && t.leaf(at, where, a, b)
	}
	old, _ := wire.DecodeValue(a).([]any)
	wished, _ := wire.DecodeValue(b).([]any)
	if n.wholeList || len(old) == 0 && len(wished) == 0 {
		return (old == nil || n.fits(old)) && (wished == nil || n.fits(wished)) && t.leaf(at, where, a, b)
	}
	if !n.associative || n.items == nil {
		return false
	}
	elementsA, ok := t.elements(n, old)
	if !ok {
		return false
	}
	elementsB, ok := t.elements(n, wished)
	if !ok {
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

// element of a list, with the label that names it.
type element struct {
	label string
	value any
}

// elements returns the elements of a list in the order of their labels. false means
// that one has no unique label.
func (t *Tree) elements(n *Type, list []any) ([]element, bool) {
	out := make([]element, len(list))
	for i, value := range list {
		label, ok := t.labelOf(n, value)
		if !ok {
			return nil, false
		}
		out[i] = element{label, value}
	}
	ok := true
	if len(out) > 1 {
		slices.SortFunc(out, func(a, b element) int {
			order, known := compareLabels(a.label, b.label)
			ok = ok && known && order != 0
			return order
		})
	}
	return out, ok
}

// labelOf returns the label of an element of a list.
func (t *Tree) labelOf(n *Type, value any) (string, bool) {
	const quote = `\"`
	var few [96]byte
	out := few[:0]
	scalar := func(value any) bool {
		switch v := value.(type) {
		case string:
			if !typed.PlainText(v) {
				return false
			}
			out = append(append(append(out, quote...), v...), quote...)
		case int64:
			out = strconv.AppendInt(out, v, 10)
		default:
			return false
		}
		return true
	}
	if len(n.keys) == 0 {
		out = append(out, "v:"...)
		ok := n.items.holds(value) && scalar(value)
		return string(out), ok
	}
	object, ok := value.(map[string]any)
	if !ok || len(n.keys) > maxKeys {
		return "", false
	}
	out = append(out, "k:{"...)
	for i, name := range n.keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, quote...), name...), quote...), ':')
		if !scalar(object[name]) {
			return "", false // absent: the key may have a default
		}
	}
	out = append(out, '}')
	return string(out), true
}
