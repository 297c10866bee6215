// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import "github.com/steer-dev/steer/internal/jsontext"

// Merge returns an object with the fields of a configuration set, which [SetOf] accepts. false
// means that it is left to the library, for example because a value of the object is not of its
// type.
//
//steer:fast comparison
func Merge(n *Type, object, configuration Object) (Object, bool) {
	out := make(Object, 0, len(object)+len(configuration))
	return out, each(object, configuration, func(name string, live, wished jsontext.Text) bool {
		merged, ok := live, true
		switch {
		case live == "":
			merged = wished
		case wished != "" && live != wished:
			var text []byte
			text, ok = n.Field(name).merge(make([]byte, 0, len(live)+len(wished)), live, wished)
			merged = jsontext.Text(text)
		}
		out = append(out, Member{name, merged})
		return ok
	})
}

// merge appends a value with those of a configuration set.
func (n *Type) merge(out []byte, live, wished jsontext.Text) ([]byte, bool) {
	if n == nil {
		return out, false
	}
	form, wishedForm := typeOf(live), typeOf(wished)
	switch {
	case live == wished:
		return append(out, live...), true
	case form == null:
		return append(out, wished...), n.sole() != otherType
	case wishedForm == null:
		// A null is no reason to remove members or elements.
		keeps := form == objectForm && !n.wholeObject && live != "{}" || form == listForm && !n.wholeList && live != "[]"
		if keeps {
			wished = live
		}
		return append(out, wished...), n.sole() == form
	case form != wishedForm:
		return out, false
	}
	switch form {
	case scalarForm:
		return append(out, wished...), n.Holds(live)
	case objectForm:
		switch {
		case !n.object:
			return out, false
		case n.wholeObject:
			return append(out, wished...), n.fits(live)
		}
		return n.mergeObjects(out, live, wished)
	case listForm:
		switch {
		case !n.list:
			return out, false
		case n.wholeList:
			return append(out, wished...), n.fits(live)
		}
		return n.mergeLists(out, live, wished)
	}
	return out, false
}

func (n *Type) mergeObjects(out []byte, live, wished jsontext.Text) ([]byte, bool) {
	out = append(out, '{')
	begin := len(out)
	ok := jsontext.EachMember(live, wished, func(name string, a, b jsontext.Text) bool {
		field := n.Field(name)
		if field == nil {
			return false
		}
		out = jsontext.AppendName(out, begin, name)
		switch {
		case a == "":
			out = append(out, b...)
		case b == "":
			out = append(out, a...)
		default:
			var ok bool
			out, ok = field.merge(out, a, b)
			return ok
		}
		return true
	})
	return append(out, '}'), ok
}

// mergeLists merges associative lists. Elements of both take the order of the configuration;
// those that only the object has stay where they are, between the others.
func (n *Type) mergeLists(out []byte, live, wished jsontext.Text) ([]byte, bool) {
	a, ok := n.elements(live)
	if !ok {
		return out, false
	}
	b, ok := n.elements(wished)
	if !ok {
		return out, false
	}
	inB, ok := partners(a, b)
	if !ok {
		return out, false
	}
	inA, ok := partners(b, a)
	if !ok {
		return out, false
	}
	out = append(out, '[')
	begin := len(out)
	put := func(i, j int) {
		if len(out) > begin {
			out = append(out, ',')
		}
		switch {
		case j < 0:
			out = append(out, a[i].value...)
		case i < 0:
			out = append(out, b[j].value...)
		default:
			var fits bool
			out, fits = n.items.merge(out, a[i].value, b[j].value)
			ok = ok && fits
		}
	}
	shared := 0 // the next element of the configuration that the object has, too
	for i, j := 0, 0; i < len(a) || j < len(b); {
		for shared < len(b) && (shared < j || inA[shared] < 0) {
			shared++
		}
		switch {
		case i < len(a) && inB[i] < 0:
			put(i, -1)
			i++
		case i < len(a) && j < len(b) && inB[i] == j:
			put(i, j)
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || shared < len(b) && shared != inB[i]):
			i++ // it comes later, or came already
		default:
			if i < len(a) && inB[i] < j {
				i++
			}
			put(inA[j], j)
			j++
		}
	}
	return append(out, ']'), ok
}

// partners returns where the elements of a list are in another one, -1 for nowhere; false if
// two elements of the other one have one label.
func partners(list, other []element) ([]int, bool) {
	at := make(map[string]int, len(other))
	for i := range other {
		if _, twice := at[other[i].label]; twice {
			return nil, false
		}
		at[other[i].label] = i
	}
	out := make([]int, len(list))
	for i := range list {
		var ok bool
		if out[i], ok = at[list[i].label]; !ok {
			out[i] = -1
		}
	}
	return out, true
}
