// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"slices"

	"github.com/steer-dev/steer/internal/jsontext"
)

// element of a list, with the label that names it.
type element struct {
	label string
	value jsontext.Text
}

// elements returns the elements of an associative list, none for null. false means that one
// has no certain label.
func (n *Type) elements(list jsontext.Text) (out []element, ok bool) {
	if !n.associative || n.items == nil {
		return nil, false
	}
	if list[0] != '[' {
		return nil, true
	}
	out = make([]element, 0, 8)
	for r := list.Reader(); r.Element(); {
		value := r.Take()
		label, ok := n.labelOf(value)
		if !ok {
			return nil, false
		}
		out = append(out, element{label, value})
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
func (n *Type) labelOf(value jsontext.Text) (string, bool) {
	var few [96]byte
	out := few[:0]
	if len(n.keys) == 0 {
		out, ok := appendScalar(append(out, "v:"...), value)
		return string(out), ok && n.items.Holds(value)
	}
	if !value.IsObject() || len(n.keys) > MaxKeys {
		return "", false
	}
	out = append(out, "k:{"...)
	for i := range n.keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, quote...), n.keys[i].name...), quote...), ':')
		part := member(value, n.keys[i].name)
		switch {
		case part != "":
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

// member returns a member of an object; "" if there is none.
func member(object jsontext.Text, name string) jsontext.Text {
	r := object.Reader()
	for is, more := r.Member(); more; is, more = r.Member() {
		if is == name {
			return r.Take()
		}
		r.Skip()
	}
	return ""
}

// appendScalar appends a text or a whole number as labels have it.
func appendScalar(out []byte, value jsontext.Text) ([]byte, bool) {
	if last := len(value) - 1; value[0] == '"' {
		return append(append(append(out, quote...), value[1:last]...), quote...), jsontext.PlainText(string(value[1:last]))
	}
	return append(out, value...), (value[0] >= '0' && value[0] <= '9' || value[0] == '-') && !isFraction(value)
}
