// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/internal/jsontext"
)

// plainLabel reports whether a label has a single spelling.
func plainLabel(label string) bool {
	if len(label) < 2 || label[1] != ':' {
		return false
	}
	switch label[0] {
	case 'f':
		return jsontext.PlainText(label[2:])
	case 'k', 'v':
		_, _, ok := identity(label)
		return ok
	}
	return false
}

// MaxKeys is the largest number of keys of an associative list.
const MaxKeys = 4

// quote is around texts in labels, which are texts of JSON themselves.
const quote = `\"`

// key is a key of the elements of an associative list.
type key struct {
	name      string
	otherwise string // how labels have its default; "" if there is none
}

// part is one key of an element's label, with its value.
type part struct {
	name  string
	text  string // or
	count int64
	// isText distinguishes the two.
	isText bool
}

// identity parses the label of an element of a list: its keys, in order, or the element
// itself.
func identity(label string) (keys [MaxKeys]part, n int, ok bool) {
	rest := label[2:]
	quoted := func() (text string, ok bool) {
		if rest, ok = strings.CutPrefix(rest, quote); !ok {
			return "", false
		}
		text, rest, ok = strings.Cut(rest, quote)
		return text, ok && jsontext.PlainText(text)
	}
	scalar := func(k *part) bool {
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
	for n < MaxKeys {
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

// compareLabels orders siblings as managedFields does: fields by name, then elements by
// their keys or values. ok is false if the order is not certain.
func compareLabels(a, b string) (order int, ok bool) {
	if a[0] != b[0] {
		return cmp.Compare(strings.IndexByte("fkv", a[0]), strings.IndexByte("fkv", b[0])), true
	}
	if a == b || a[0] == 'f' {
		return strings.Compare(a, b), true
	}
	x, n, _ := identity(a)
	y, m, _ := identity(b)
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

// pathOf is a label as kube-apiserver names the field in a path.
func pathOf(label string) string {
	if label[0] == 'f' {
		return "." + label[2:]
	}
	parts, n, _ := identity(label)
	out := []byte{'['}
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		p := &parts[i]
		out = append(append(out, p.name...), '=')
		if p.isText {
			out = strconv.AppendQuote(out, p.text)
		} else {
			out = strconv.AppendInt(out, p.count, 10)
		}
	}
	return string(append(out, ']'))
}
