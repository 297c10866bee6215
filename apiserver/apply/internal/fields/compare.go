// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/steer-dev/steer/internal/jsontext"
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

func typeOf(value jsontext.Text) jsonType {
	switch value[0] {
	case 'n':
		return null
	case '{':
		return objectForm
	case '[':
		return listForm
	case '"', 't', 'f':
		return scalarForm
	}
	if isFraction(value) {
		return otherType
	}
	return scalarForm
}

func isFraction(number jsontext.Text) bool { return strings.ContainsAny(string(number), ".e") }

// Compare returns the changes from one object to another. false means that the comparison is
// left to the library, for example because a value is not of its type.
//
//steer:fast comparison
func Compare(n *Type, before, after Object) (*Tree, bool) {
	if n == nil || !n.object || n.wholeObject {
		return nil, false
	}
	t, last := newTree(16+max(0, after.size()-before.size())/32), int32(0)
	return t, each(before, after, func(name string, a, b jsontext.Text) (ok bool) {
		last, ok = t.compareMember(n, 0, last, name, a, b)
		return ok
	})
}

// compareMember compares a member of two objects, of which one may not have it, and adds a
// branch after its last sibling if they differ. It returns which is the last one then.
func (t *Tree) compareMember(n *Type, at, last int32, name string, a, b jsontext.Text) (int32, bool) {
	if a == b {
		return last, true
	}
	if !jsontext.PlainText(name) {
		return last, false
	}
	label, of, _ := n.field(name)
	here := t.grow(at, last, label)
	return here, t.compare(of, here, a, b)
}

// compare marks below a branch the differences between two values of a type that differ; one of
// them may be "", for none. false as for [Compare].
func (t *Tree) compare(n *Type, at int32, a, b jsontext.Text) bool {
	switch {
	case n == nil:
		return false
	case a == "":
		r := b.Reader()
		return t.mark(n, at, &r, added, true)
	case b == "":
		r := a.Reader()
		return t.mark(n, at, &r, removed, true)
	}
	formA, formB := typeOf(a), typeOf(b)
	form := max(formA, formB)
	if formA != formB && (min(formA, formB) != null || n.sole() == otherType) {
		return false
	}
	changed := func(ok bool) bool {
		t.branches[at].mark = modified
		return ok
	}
	switch form {
	case scalarForm:
		return changed(n.scalar != "" && (formA == null || n.Holds(a)) && (formB == null || n.Holds(b)))
	case listForm:
		switch {
		case !n.list:
			return false
		case n.wholeList:
			return changed((formA == null || n.fits(a)) && (formB == null || n.fits(b)))
		case isEmpty(a) && isEmpty(b):
			return changed(true)
		}
		return t.compareLists(n, at, a, b)
	case objectForm:
		switch {
		case !n.object:
			return false
		case n.wholeObject:
			return changed((formA == null || n.fits(a)) && (formB == null || n.fits(b)))
		case isEmpty(a) && isEmpty(b):
			return changed(true)
		}
		last := int32(0)
		return jsontext.EachMember(members(a), members(b), func(name string, a, b jsontext.Text) (ok bool) {
			last, ok = t.compareMember(n, at, last, name, a, b)
			return ok
		})
	}
	return false
}

// isEmpty reports whether a value has no members and no elements; null has none.
func isEmpty(value jsontext.Text) bool { return value == "{}" || value == "[]" || value == "null" }

// members returns an object; "" for null.
func members(object jsontext.Text) jsontext.Text {
	if !object.IsObject() {
		return ""
	}
	return object
}

func (t *Tree) compareLists(n *Type, at int32, a, b jsontext.Text) bool {
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
		if x.value == y.value {
			continue
		}
		label := x.label
		if order > 0 {
			label = y.label
		}
		last = t.grow(at, last, label)
		if !t.compare(n.items, last, x.value, y.value) {
			return false
		}
	}
	return true
}

// Holds reports whether a scalar is of the type.
func (n *Type) Holds(value jsontext.Text) bool {
	want := schema.Numeric
	switch value[0] {
	case '"':
		want = schema.String
	case 't', 'f':
		want = schema.Boolean
	case '{', '[', 'n':
		return false
	default:
		if isFraction(value) {
			return false
		}
	}
	return n.scalar == want || n.scalar == schema.Untyped
}

// fits reports whether a value certainly has the type and contains nothing whose label
// depends on values.
func (n *Type) fits(value jsontext.Text) bool {
	r := value.Reader()
	return n.takes(&r)
}

// takes is fits for the current value of a reader, which it consumes.
func (n *Type) takes(r *jsontext.Reader) bool {
	if n == nil {
		return false
	}
	switch r.Kind() {
	case '{':
		if !n.object {
			return false
		}
		for name, ok := r.Member(); ok; name, ok = r.Member() {
			if !n.Field(name).takes(r) {
				return false
			}
		}
		return true
	case '[':
		if !n.list || !n.wholeList {
			return false
		}
		for r.Element() {
			if !n.items.takes(r) {
				return false
			}
		}
		return true
	}
	return n.Holds(r.Take())
}
