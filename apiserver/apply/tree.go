// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// tree is a set of fields as the record keeps it, or what a write does to the
// fields of an object. The zero index is the root, and siblings are in the order
// in which the record has them.
//
// Labels are those of the record ("f:spec"). A tree is read from and compared
// with others of one form only: as text, in which quotes in labels are escaped,
// or as decoded JSON. Labels that the two would write in more than one way are
// refused by all that makes trees.
type tree struct {
	branches []branch
	escaped  bool
	metadata int32 // the branch of the metadata of an object, if it was met
}

// branch is one field. Indices are 0 for none.
type branch struct {
	label string
	mark  mark
	// touched tells that something at or below it has changed since it was read.
	touched     bool
	child, next int32
}

// mark says what a field is in a tree.
type mark uint8

const (
	unmarked mark = iota // only on the way to others
	owned                // in a set
	added                // what a write does
	modified
	removed
)

func newTree(escaped bool, size int) *tree {
	return &tree{escaped: escaped, branches: make([]branch, 1, size+1)}
}

// grow adds a branch behind its last sibling, 0 for the first one.
func (t *tree) grow(parent, last int32, label string) int32 {
	at := int32(len(t.branches)) //nolint:gosec // a record has few fields
	t.branches = append(t.branches, branch{label: label})
	if last == 0 {
		t.branches[parent].child = at
	} else {
		t.branches[last].next = at
	}
	return at
}

func (t *tree) empty() bool { return t.branches[0].child == 0 }

// readText reads a set as text. false means that it is not written as this
// package writes it, or that it is empty.
func readText(text string) (*tree, bool) {
	t := newTree(true, strings.Count(text, `":{`))
	rest, ok := t.readObject(text, 0)
	return t, ok && rest == "" && !t.empty()
}

func (t *tree) readObject(text string, at int32) (rest string, ok bool) {
	if text, ok = strings.CutPrefix(text, "{"); !ok {
		return "", false
	}
	if rest, ok = strings.CutPrefix(text, "}"); ok {
		t.branches[at].mark = owned
		return rest, true
	}
	if rest, ok = strings.CutPrefix(text, `".":{},`); ok && at != 0 {
		t.branches[at].mark = owned
		text = rest
	}
	for last := int32(0); ; {
		label, after, ok := cutLabel(text)
		if !ok || !t.plain(label) || last != 0 && !inOrderOfLabels(t.branches[last].label, label) {
			return "", false
		}
		last = t.grow(at, last, label)
		if text, ok = t.readObject(after, last); !ok || text == "" {
			return "", false
		}
		switch text[0] {
		case ',':
			text = text[1:]
		case '}':
			return text[1:], true
		default:
			return "", false
		}
	}
}

// cutLabel returns the label that a member of an object begins with, and what
// follows its colon.
func cutLabel(text string) (label, rest string, ok bool) {
	if text, ok = strings.CutPrefix(text, `"`); !ok {
		return "", "", false
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			rest, ok = strings.CutPrefix(text[i+1:], ":")
			return text[:i], rest, ok
		}
	}
	return "", "", false
}

// readFields reads a set as decoded JSON.
func readFields(fields map[string]any) (*tree, bool) {
	t := newTree(false, sizeOf(fields))
	return t, len(fields) > 0 && t.readMembers(fields, 0)
}

func sizeOf(fields map[string]any) int {
	n := len(fields)
	for _, members := range fields {
		members, _ := members.(map[string]any)
		n += sizeOf(members)
	}
	return n
}

func (t *tree) readMembers(fields map[string]any, at int32) bool {
	if len(fields) == 0 {
		t.branches[at].mark = owned
		return true
	}
	var few [32]string
	labels := few[:0]
	for label := range fields {
		if label == "." {
			t.branches[at].mark = owned
			continue
		}
		if !t.plain(label) {
			return false
		}
		labels = append(labels, label)
	}
	if len(labels) == 0 || at == 0 && len(labels) < len(fields) {
		return false
	}
	ok := true
	slices.SortFunc(labels, func(a, b string) int {
		order, tells := compareLabels(a, b)
		ok = ok && tells && order != 0
		return order
	})
	for i, last := 0, int32(0); i < len(labels) && ok; i++ {
		last = t.grow(at, last, labels[i])
		members, isObject := fields[labels[i]].(map[string]any)
		ok = isObject && members != nil && t.readMembers(members, last)
	}
	return ok
}

// text writes a set as text.
func (t *tree) text() string {
	return string(t.appendText(make([]byte, 0, 24*len(t.branches)), 0))
}

func (t *tree) appendText(out []byte, at int32) []byte {
	out = append(out, '{')
	child := t.branches[at].child
	if child != 0 && t.branches[at].mark == owned {
		out = append(out, `".":{},`...)
	}
	for first := child; child != 0; child = t.branches[child].next {
		if child != first {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, t.branches[child].label...)
		out = append(out, `":`...)
		out = t.appendText(out, child)
	}
	return append(out, '}')
}

// fields writes a set as decoded JSON, which shares what has not changed with
// what the set was read from, if it was.
func (t *tree) fields(from map[string]any) map[string]any {
	return t.fieldsAt(0, from, map[string]any{})
}

func (t *tree) fieldsAt(at int32, from, leaf map[string]any) map[string]any {
	child := t.branches[at].child
	switch {
	case from != nil && !t.branches[at].touched:
		return from
	case child == 0:
		return leaf
	}
	out := make(map[string]any, len(from)+1)
	if t.branches[at].mark == owned {
		out["."] = leaf
	}
	for ; child != 0; child = t.branches[child].next {
		label := t.branches[child].label
		members, _ := from[label].(map[string]any)
		out[label] = t.fieldsAt(child, members, leaf)
	}
	return out
}

// plain tells whether a label is one that is written in one way only.
func (t *tree) plain(label string) bool {
	if len(label) < 2 || label[1] != ':' {
		return false
	}
	switch label[0] {
	case 'f':
		return plainText(label[2:])
	case 'k', 'v':
		_, _, ok := identity(label, t.escaped)
		return ok
	}
	return false
}

// plainText tells whether JSON has no need to escape anything of a text.
func plainText(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// maxKeys is the largest number of fields that name the elements of a list.
const maxKeys = 4

// key is one field of the name of an element.
type key struct {
	name  string
	text  string // or
	count int64
	// isText tells which of the two it is.
	isText bool
}

// identity reads the label of an element of a list: the fields that name it, in
// order, or the element itself.
func identity(label string, escaped bool) (keys [maxKeys]key, n int, ok bool) {
	quote := `"`
	if escaped {
		quote = `\"`
	}
	rest := label[2:]
	quoted := func() (text string, ok bool) {
		if rest, ok = strings.CutPrefix(rest, quote); !ok {
			return "", false
		}
		text, rest, ok = strings.Cut(rest, quote)
		return text, ok && plainText(text)
	}
	scalar := func(k *key) bool {
		if strings.HasPrefix(rest, quote) {
			k.isText = true
			k.text, ok = quoted()
			return ok
		}
		end := strings.IndexAny(rest, ",}")
		if end < 0 {
			end = len(rest)
		}
		var err error
		k.count, err = strconv.ParseInt(rest[:end], 10, 64)
		ok = err == nil && strconv.FormatInt(k.count, 10) == rest[:end]
		rest = rest[end:]
		return ok
	}
	if label[0] == 'v' {
		return keys, 1, scalar(&keys[0]) && rest == ""
	}
	if rest, ok = strings.CutPrefix(rest, "{"); !ok {
		return keys, 0, false
	}
	for n < maxKeys {
		if keys[n].name, ok = quoted(); !ok || n > 0 && keys[n-1].name >= keys[n].name {
			return keys, n, false
		}
		if rest, ok = strings.CutPrefix(rest, ":"); !ok || !scalar(&keys[n]) {
			return keys, n, false
		}
		n++
		if rest == "}" {
			return keys, n, true
		}
		if rest, ok = strings.CutPrefix(rest, ","); !ok {
			return keys, n, false
		}
	}
	return keys, n, false
}

func inOrderOfLabels(a, b string) bool {
	order, ok := compareLabels(a, b)
	return ok && order < 0
}

// compareLabels orders siblings as the record does: fields by name, then
// elements by what names them. ok is false if it cannot tell.
func compareLabels(a, b string) (order int, ok bool) {
	if a[0] != b[0] {
		return cmp.Compare(strings.IndexByte("fkv", a[0]), strings.IndexByte("fkv", b[0])), true
	}
	if a == b || a[0] == 'f' {
		return strings.Compare(a, b), true
	}
	// Quotes are escaped in both or in neither.
	escaped := strings.Contains(a, `\`)
	x, n, _ := identity(a, escaped)
	y, m, _ := identity(b, escaped)
	for i := range min(n, m) {
		p, q := &x[i], &y[i]
		if p.isText != q.isText {
			return 0, false
		}
		if order = cmp.Or(strings.Compare(p.name, q.name), strings.Compare(p.text, q.text), cmp.Compare(p.count, q.count)); order != 0 {
			return order, true
		}
	}
	return cmp.Compare(n, m), n != m
}

// subtract takes the fields out of a set that have a mark in another tree, and
// tells whether there were any.
func (t *tree) subtract(other *tree) (changed, ok bool) { return t.subtractAt(0, other, 0) }

func (t *tree) subtractAt(at int32, other *tree, otherAt int32) (changed, ok bool) {
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
			b.mark, b.touched, changed = unmarked, true, true
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
	t.branches[at].touched = t.branches[at].touched || changed
	return changed, true
}

// cut removes a branch; last is the sibling before it.
func (t *tree) cut(parent, last, at int32) {
	if last == 0 {
		t.branches[parent].child = t.branches[at].next
	} else {
		t.branches[last].next = t.branches[at].next
	}
}

// prune removes the branches that a set of names has, with all below them. The
// set has nothing but fields, no elements of lists.
func (t *tree) prune(at int32, names *tree, namesAt int32) {
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

// gains turns what a write does into the set of fields that it adds and
// modifies, without those that nobody owns.
func (t *tree) gains() {
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

func (t *tree) gainsAt(at int32) {
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

// union adds the fields of another set.
func (t *tree) union(other *tree) bool {
	_, ok := t.unionAt(0, other, 0)
	return ok
}

func (t *tree) unionAt(at int32, other *tree, otherAt int32) (changed, ok bool) {
	last, i := int32(0), t.branches[at].child
	for j := other.branches[otherAt].child; j != 0; {
		order := 1
		if i != 0 {
			if order, ok = compareLabels(t.branches[i].label, other.branches[j].label); !ok {
				return false, false
			}
		}
		if order < 0 {
			last, i = i, t.branches[i].next
			continue
		}
		if order > 0 {
			here := t.grow(at, last, other.branches[j].label)
			t.branches[here].next = i
			last, changed = here, true
		} else {
			last, i = i, t.branches[i].next
		}
		if b := &t.branches[last]; other.branches[j].mark == owned && b.mark != owned {
			b.mark, b.touched, changed = owned, true, true
		}
		deeper, ok := t.unionAt(last, other, j)
		if !ok {
			return false, false
		}
		changed = changed || deeper
		j = other.branches[j].next
	}
	t.branches[at].touched = t.branches[at].touched || changed
	return changed, true
}

// fits tells whether a set has no fields below what has one owner altogether by
// now, and so can be taken as it is.
func (t *tree) fits(at int32, n *node) bool {
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
				next = n.field(label[2:])
			}
		}
		if !t.fits(i, next) {
			return false
		}
	}
	return true
}
