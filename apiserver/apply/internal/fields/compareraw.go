// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// typeOfRaw is typeOf for raw values.
func typeOfRaw(value wire.Text) jsonType {
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

func isFraction(number wire.Text) bool { return strings.ContainsAny(string(number), ".e") }

// rawPair returns two values if all of them that exist are raw; one that does not exist, or is
// null, is "".
func rawPair(where side, a, b any) (x, y wire.Text, ok bool) {
	x, isX := valueOf(a)
	y, isY := valueOf(b)
	switch where {
	case left:
		return x, "", isX
	case right:
		return "", y, isY
	case both:
	}
	return x, y, isX && isY
}

// valueOf returns a value if it is raw: "" for null.
func valueOf(v any) (value wire.Text, raw bool) {
	value, raw = v.(wire.Text)
	if raw && typeOfRaw(value) == null {
		return "", true
	}
	return value, raw
}

// holdsRaw is [Type.Holds] for raw values.
func (n *Type) holdsRaw(value wire.Text) bool {
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

// fitsRaw is fits for raw values.
func (n *Type) fitsRaw(value wire.Text) bool {
	r := value.Reader()
	return n.takes(&r)
}

// takes is fitsRaw for the current value of a reader, which it consumes.
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
	return n.holdsRaw(r.Take())
}

// compareRawObjects is compareObjects for raw values, "" if absent.
func (t *Tree) compareRawObjects(n *Type, at int32, where side, a, b wire.Text) bool {
	if n.wholeObject {
		return (a == "" || n.fitsRaw(a)) && (b == "" || n.fitsRaw(b)) && t.leaf(at, where, a, b)
	}
	if len(a) <= len("{}") && len(b) <= len("{}") {
		return t.leaf(at, where, a, b)
	}
	last := int32(0)
	ok := wire.EachMember(a, b, func(name string, valueA, valueB wire.Text) bool {
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
		return t.compare(n.Field(name), last, sideOf(where, valueA != "", valueB != ""), x, y)
	})
	return ok && t.whole(at, where)
}
