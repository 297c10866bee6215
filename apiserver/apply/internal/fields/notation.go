// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"slices"
	"strings"
)

// ReadText reads a set as text. false means that it is not written as this
// package writes it, or that it is empty.
func ReadText(text string) (*Tree, bool) {
	t := newTree(true, strings.Count(text, `":{`))
	rest, ok := t.readObject(text, 0)
	return t, ok && rest == "" && !t.Empty()
}

func (t *Tree) readObject(text string, at int32) (rest string, ok bool) {
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

// ReadFields reads a set as decoded JSON.
func ReadFields(fields map[string]any) (*Tree, bool) {
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

func (t *Tree) readMembers(fields map[string]any, at int32) bool {
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

// Text writes a set as text.
func (t *Tree) Text() string {
	return string(t.appendText(make([]byte, 0, 24*len(t.branches)), 0))
}

func (t *Tree) appendText(out []byte, at int32) []byte {
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

// Fields writes a set as decoded JSON, which shares what has not changed with
// what the set was read from, if it was.
func (t *Tree) Fields(from map[string]any) map[string]any {
	return t.fieldsAt(0, from, map[string]any{})
}

func (t *Tree) fieldsAt(at int32, from, leaf map[string]any) map[string]any {
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
