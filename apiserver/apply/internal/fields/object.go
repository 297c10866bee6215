// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"slices"
	"strings"

	"github.com/steer-dev/steer/internal/jsontext"
)

// Object is an object: its members, in the order of their names. It has no managedFields.
type Object []Member

// Member is a member of an object.
type Member struct {
	Name  string
	Value jsontext.Text
}

// Split returns the members of the text of an object.
func Split(object jsontext.Text) Object {
	out := make(Object, 0, 8)
	r := object.Reader()
	for name, more := r.Member(); more; name, more = r.Member() {
		out = append(out, Member{name, r.Take()})
	}
	return out
}

// Get returns a member; "" if there is none.
func (o Object) Get(name string) jsontext.Text {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value
		}
	}
	return ""
}

// size is how long the values are together.
func (o Object) size() (n int) {
	for i := range o {
		n += len(o[i].Value)
	}
	return n
}

// Sort orders members that were put together.
func (o Object) Sort() {
	slices.SortFunc(o, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
}

// each calls do with the members of two objects, "" for one that does not exist, in order until
// it returns false.
func each(a, b Object, do func(name string, a, b jsontext.Text) bool) bool {
	for len(a) > 0 || len(b) > 0 {
		var valueA, valueB jsontext.Text
		var name string
		inA := len(b) == 0 || len(a) > 0 && a[0].Name <= b[0].Name
		inB := len(a) == 0 || len(b) > 0 && b[0].Name <= a[0].Name
		if inA {
			name, valueA, a = a[0].Name, a[0].Value, a[1:]
		}
		if inB {
			name, valueB, b = b[0].Name, b[0].Value, b[1:]
		}
		if !do(name, valueA, valueB) {
			return false
		}
	}
	return true
}
