// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

// Tree is a set of fields as managedFields has it, or the changes of a write. The zero
// index is the root, and siblings are in the order of managedFields.
//
// Labels are those of FieldsV1 ("f:spec") as in its JSON text: quotes in them are
// escaped. Labels with more than one spelling are refused by all constructors of trees.
type Tree struct {
	branches []branch
}

// branch is one field. 0 is the index for none.
type branch struct {
	label       string
	mark        mark
	child, next int32
}

// mark is the role of a field in a tree.
type mark uint8

const (
	unmarked mark = iota // a parent of marked fields only
	owned                // in a set
	added                // by a write
	modified
	removed
)

// None is the empty set.
func None() *Tree { return newTree(0) }

func newTree(size int) *Tree {
	return &Tree{branches: make([]branch, 1, size+1)}
}

// grow adds a branch after its last sibling, 0 for the first one.
func (t *Tree) grow(parent, last int32, label string) int32 {
	at := int32(len(t.branches)) // managedFields has few fields
	t.branches = append(t.branches, branch{label: label})
	if last == 0 {
		t.branches[parent].child = at
	} else {
		t.branches[last].next = at
	}
	return at
}

// Empty reports whether a tree has no fields.
func (t *Tree) Empty() bool { return t.branches[0].child == 0 }

// Top reports whether a set has a field of the object or a part of it; whole: the field itself.
func (t *Tree) Top(name string) (has, whole bool) {
	for i := t.branches[0].child; i != 0; i = t.branches[i].next {
		if t.branches[i].label == "f:"+name {
			return true, t.branches[i].mark == owned
		}
	}
	return false, false
}

// Subtract removes the fields of a set that are marked in another tree, and reports
// whether there were any.
func (t *Tree) Subtract(other *Tree) (changed, ok bool) { return t.subtractAt(0, other, 0) }

func (t *Tree) subtractAt(at int32, other *Tree, otherAt int32) (changed, ok bool) {
	last, i, j := int32(0), t.branches[at].child, other.branches[otherAt].child
	for i != 0 && j != 0 {
		order, ok := compareLabels(t.branches[i].label, other.branches[j].label)
		switch {
		case !ok:
			return false, false
		case order < 0:
			last, i = i, t.branches[i].next
			continue
		case order > 0:
			j = other.branches[j].next
			continue
		}
		b := &t.branches[i]
		if b.mark == owned && other.branches[j].mark != unmarked {
			b.mark, changed = unmarked, true
		}
		deeper, ok := t.subtractAt(i, other, j)
		if !ok {
			return false, false
		}
		changed = changed || deeper
		if b.mark == unmarked && b.child == 0 {
			t.cut(at, last, i)
		} else {
			last = i
		}
		i, j = b.next, other.branches[j].next
	}
	return changed, true
}

// cut removes a branch; last is its previous sibling.
func (t *Tree) cut(parent, last, at int32) {
	if last == 0 {
		t.branches[parent].child = t.branches[at].next
	} else {
		t.branches[last].next = t.branches[at].next
	}
}

// Prune removes the fields in names and everything below them. names has only fields,
// no elements of lists.
func (t *Tree) Prune(names *Tree) { t.prune(0, names, 0) }

func (t *Tree) prune(at int32, names *Tree, namesAt int32) {
	for i := names.branches[namesAt].child; i != 0; i = names.branches[i].next {
		last := int32(0)
		for j := t.branches[at].child; j != 0; j = t.branches[j].next {
			if t.branches[j].label != names.branches[i].label {
				last = j
				continue
			}
			if names.branches[i].mark == owned {
				t.cut(at, last, j)
			} else {
				t.prune(j, names, i)
			}
			break
		}
	}
}

// Gains turns the changes of a write into the set of fields that it adds and modifies,
// without those that no manager owns.
func (t *Tree) Gains() {
	for i := t.branches[0].child; i != 0; i = t.branches[i].next {
		switch t.branches[i].label {
		case "f:apiVersion", "f:kind":
			t.branches[i].mark = unmarked
		case "f:metadata":
			t.branches[i].mark = unmarked
			for j := t.branches[i].child; j != 0; j = t.branches[j].next {
				switch t.branches[j].label {
				case "f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid", "f:clusterName", "f:generation",
					"f:managedFields", "f:resourceVersion":
					t.branches[j].mark = unmarked
				}
			}
		}
	}
	t.gainsAt(0)
}

func (t *Tree) gainsAt(at int32) {
	last := int32(0)
	for i := t.branches[at].child; i != 0; i = t.branches[i].next {
		t.gainsAt(i)
		b := &t.branches[i]
		switch b.mark {
		case added, modified, owned:
			b.mark = owned
		default:
			b.mark = unmarked
		}
		if b.mark == unmarked && b.child == 0 {
			t.cut(at, last, i)
		} else {
			last = i
		}
	}
}

// Union adds the fields of another set; false if the order of labels is not certain.
func (t *Tree) Union(other *Tree) bool {
	return t.unionAt(0, other, 0)
}

func (t *Tree) unionAt(at int32, other *Tree, otherAt int32) (ok bool) {
	last, i := int32(0), t.branches[at].child
	for j := other.branches[otherAt].child; j != 0; {
		order := 1
		if i != 0 {
			if order, ok = compareLabels(t.branches[i].label, other.branches[j].label); !ok {
				return false
			}
		}
		if order < 0 {
			last, i = i, t.branches[i].next
			continue
		}
		if order > 0 {
			here := t.grow(at, last, other.branches[j].label)
			t.branches[here].next = i
			last = here
		} else {
			last, i = i, t.branches[i].next
		}
		if b := &t.branches[last]; other.branches[j].mark == owned && b.mark != owned {
			b.mark = owned
		}
		if !t.unionAt(last, other, j) {
			return false
		}
		j = other.branches[j].next
	}
	return true
}

// Fits reports whether a set has no fields below values that are atomic in the type,
// and so needs no conversion.
func (t *Tree) Fits(n *Type) bool { return t.fits(0, n) }

func (t *Tree) fits(at int32, n *Type) bool {
	if n == nil || t.branches[at].child == 0 {
		return true
	}
	switch {
	case n.object:
		if n.wholeObject {
			return false
		}
	case n.scalar != "":
		return true
	case n.wholeList:
		return false
	}
	for i := t.branches[at].child; i != 0; i = t.branches[i].next {
		next := n.items
		if n.object {
			next = n.rest
			if label := t.branches[i].label; label[0] == 'f' {
				next = n.Field(label[2:])
			}
		}
		if !t.fits(i, next) {
			return false
		}
	}
	return true
}
