// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"slices"
	"strings"

	"github.com/steer-dev/steer/internal/jsontext"
)

// ReadText parses a FieldsV1 text. false means that it is empty or not spelled as this
// package writes it.
func ReadText(text string) (*Tree, bool) { return read(text, false) }

// ReadRaw is [ReadText] for a raw set, whose labels are sorted as texts.
func ReadRaw(set jsontext.Text) (*Tree, bool) { return read(string(set), true) }

func read(text string, sort bool) (*Tree, bool) {
	t := newTree(strings.Count(text, `":{`))
	rest, ok := t.readObject(text, 0, sort)
	return t, ok && rest == "" && !t.Empty()
}

// readObject parses the set below a branch. With sort the siblings are sorted, without
// it they must be in order.
func (t *Tree) readObject(text string, at int32, sort bool) (rest string, ok bool) {
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
	inOrder := true
	for last := int32(0); ; {
		label, after, ok := cutLabel(text)
		if !ok || !plainLabel(label) {
			return "", false
		}
		if last != 0 {
			order, ok := compareLabels(t.branches[last].label, label)
			inOrder = inOrder && ok && order < 0
		}
		last = t.grow(at, last, label)
		if text, ok = t.readObject(after, last, sort); !ok || text == "" {
			return "", false
		}
		switch text[0] {
		case ',':
			text = text[1:]
		case '}':
			return text[1:], inOrder || sort && t.sort(at)
		default:
			return "", false
		}
	}
}

// sort sorts the branches below one; false if the order is not certain.
func (t *Tree) sort(at int32) bool {
	var few [32]int32
	siblings := few[:0]
	for i := t.branches[at].child; i != 0; i = t.branches[i].next {
		siblings = append(siblings, i)
	}
	ok := true
	slices.SortFunc(siblings, func(a, b int32) int {
		order, known := compareLabels(t.branches[a].label, t.branches[b].label)
		ok = ok && known && order != 0
		return order
	})
	next := int32(0)
	for _, i := range slices.Backward(siblings) {
		t.branches[i].next, next = next, i
	}
	t.branches[at].child = next
	return ok
}

// cutLabel returns the label at the beginning of a member, and the text after its
// colon.
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

// Text returns a set as FieldsV1 text.
func (t *Tree) Text() string { return string(t.AppendText(make([]byte, 0, 24*len(t.branches)))) }

// AppendText appends the FieldsV1 text of a set.
func (t *Tree) AppendText(out []byte) []byte { return t.appendText(out, 0) }

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
