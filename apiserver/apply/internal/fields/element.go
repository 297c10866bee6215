// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"slices"
	"strconv"

	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// element of a list, with the label that names it.
type element struct {
	label string
	value any
}

// isEmpty reports whether a list has no elements; null has none.
func isEmpty(list any) bool {
	switch v := list.(type) {
	case []any:
		return len(v) == 0
	case wire.Text:
		return v == "[]" || v == "null"
	}
	return true
}

// elements returns the elements of an associative list, none for null. false means that one
// has no certain label.
func (n *Type) elements(list any) ([]element, bool) {
	if !n.associative || n.items == nil {
		return nil, false
	}
	var out []element
	add := func(value any) bool {
		label, ok := n.labelOf(value)
		out = append(out, element{label, value})
		return ok
	}
	switch list := list.(type) {
	case []any:
		out = make([]element, 0, len(list))
		for _, value := range list {
			if !add(value) {
				return nil, false
			}
		}
	case wire.Text:
		if list[0] != '[' {
			break
		}
		for r := list.Reader(); r.Element(); {
			if !add(r.Take()) {
				return nil, false
			}
		}
	}
	return out, true
}

// sortElements sorts elements as managedFields has them; false if two have one label, or
// their order is not certain.
func sortElements(list []element) bool {
	ok := true
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b element) int {
			order, known := compareLabels(a.label, b.label)
			ok = ok && known && order != 0
			return order
		})
	}
	return ok
}

// labelOf returns the label of an element of a list.
func (n *Type) labelOf(value any) (string, bool) {
	var few [96]byte
	out := few[:0]
	if len(n.keys) == 0 {
		out, ok := appendScalar(append(out, "v:"...), value)
		return string(out), ok && n.items.Holds(value)
	}
	if typeOf(value) != objectForm || len(n.keys) > MaxKeys {
		return "", false
	}
	out = append(out, "k:{"...)
	for i := range n.keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, quote...), n.keys[i].name...), quote...), ':')
		part, has := member(value, n.keys[i].name)
		switch {
		case has:
			var ok bool
			if out, ok = appendScalar(out, part); !ok {
				return "", false
			}
		case n.keys[i].otherwise != "":
			out = append(out, n.keys[i].otherwise...)
		default:
			return "", false
		}
	}
	out = append(out, '}')
	return string(out), true
}

// member returns a member of an object.
func member(object any, name string) (value any, has bool) {
	raw, isRaw := object.(wire.Text)
	if !isRaw {
		value, has = object.(map[string]any)[name]
		return value, has
	}
	r := raw.Reader()
	for is, more := r.Member(); more; is, more = r.Member() {
		if is == name {
			return r.Take(), true
		}
		r.Skip()
	}
	return nil, false
}

// appendScalar appends a text or a whole number as labels have it.
func appendScalar(out []byte, value any) ([]byte, bool) {
	switch v := value.(type) {
	case string:
		return append(append(append(out, quote...), v...), quote...), typed.PlainText(v)
	case int64:
		return strconv.AppendInt(out, v, 10), true
	case wire.Text:
		if last := len(v) - 1; v[0] == '"' {
			return append(append(append(out, quote...), v[1:last]...), quote...), typed.PlainText(string(v[1:last]))
		}
		return append(out, v...), v[0] >= '0' && v[0] <= '9' && !isFraction(v) || v[0] == '-' && !isFraction(v)
	}
	return out, false
}
