// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// formOfFrozen is formOf for frozen values.
func formOfFrozen(value wire.Frozen) form {
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
		return otherForm
	}
	return scalarForm
}

func isFraction(number wire.Frozen) bool { return strings.ContainsAny(string(number), ".e") }

// frozenPair returns two values if all of them that are there are frozen; one that is
// not there is empty.
func frozenPair(where side, a, b any) (x, y wire.Frozen, ok bool) {
	x, isX := a.(wire.Frozen)
	y, isY := b.(wire.Frozen)
	switch where {
	case left:
		return x, "", isX
	case right:
		return "", y, isY
	case both:
	}
	// One that is null is like an empty one, which has no text.
	if isX && formOfFrozen(x) == null {
		x = ""
	}
	if isY && formOfFrozen(y) == null {
		y = ""
	}
	return x, y, isX && isY
}

// holdsFrozen is holds for frozen values.
func (n *Type) holdsFrozen(value wire.Frozen) bool {
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

// fitsFrozen is fits for frozen values.
func (n *Type) fitsFrozen(value wire.Frozen) bool {
	r := value.Reader()
	return n.takes(&r)
}

// takes is fitsFrozen for the value that a reader is at, which it takes.
func (n *Type) takes(r *wire.Reader) bool {
	if n == nil {
		return false
	}
	switch r.Kind() {
	case '{':
		if !n.object {
			return false
		}
		for name, ok := r.Member(); ok; name, ok = r.Member() {
			if !n.field(name).takes(r) {
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
	return n.holdsFrozen(r.Take())
}

// compareFrozenObjects is compareObjects for frozen ones, empty where there is none.
func (t *Tree) compareFrozenObjects(n *Type, at int32, where side, a, b wire.Frozen) bool {
	if n.wholeObject {
		return (a == "" || n.fitsFrozen(a)) && (b == "" || n.fitsFrozen(b)) && t.leaf(at, where, a, b)
	}
	if len(a) <= len("{}") && len(b) <= len("{}") {
		return t.leaf(at, where, a, b)
	}
	last := int32(0)
	ok := wire.EachMember(a, b, func(name string, valueA, valueB wire.Frozen) bool {
		if valueA == valueB {
			return true
		}
		if !typed.PlainText(name) {
			return false
		}
		var x, y any
		if valueA != "" {
			x = valueA
		}
		if valueB != "" {
			y = valueB
		}
		last = t.growField(at, last, name)
		return t.compare(n.field(name), last, sideOf(where, valueA != "", valueB != ""), x, y)
	})
	return ok && t.whole(at, where)
}
