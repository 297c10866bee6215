// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"strconv"
	"strings"
)

// find returns the place that a JSON pointer names, nil if the object or list that
// contains it does not exist. Text before the first slash is ignored.
func (d *document) find(pointer string) *place {
	parts := strings.Split(pointer, "/")
	if len(parts) < 2 {
		return nil
	}
	last := len(parts) - 1
	p := &place{doc: d, parent: d.root, put: func(v any) { d.root = v }, key: unescape(parts[last])}
	for _, part := range parts[1:last] {
		holder := place{parent: p.parent, put: p.put, key: unescape(part)}
		next, err := holder.get()
		if err != nil {
			return nil
		}
		p.parent, p.put = next, holder.replace
	}
	switch p.parent.(type) {
	case map[string]any, []any:
		return p
	default:
		return nil
	}
}

func unescape(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// place is a member of an object or an element of a list, existing or not.
type place struct {
	doc    *document
	parent any       // map[string]any or []any
	put    func(any) // stores a reallocated list in its parent
	key    string
}

func (p *place) get() (any, error) {
	switch parent := p.parent.(type) {
	case map[string]any:
		return parent[p.key], nil
	case []any:
		i, err := p.index(len(parent))
		if err != nil {
			return nil, err
		}
		return parent[i], nil
	default:
		return nil, errMissing
	}
}

// replace sets an element that exists, which find has checked.
func (p *place) replace(value any) {
	switch parent := p.parent.(type) {
	case map[string]any:
		parent[p.key] = value
	case []any:
		if i, err := p.index(len(parent)); err == nil {
			parent[i] = value
		}
	}
}

// add sets a member of an object, or inserts before an element of a list.
func (p *place) add(value any) error {
	parent, isList := p.parent.([]any)
	if !isList {
		p.replace(value)
		return nil
	}
	i := len(parent)
	if p.key != "-" {
		n, err := strconv.Atoi(p.key)
		if err != nil {
			return fmt.Errorf("value was not a proper array index: '%s': %w", p.key, err)
		}
		if i, err = normalise(n, len(parent)+1); err != nil {
			return err
		}
	}
	if err := p.doc.shift(len(parent) - i); err != nil {
		return err
	}
	parent = append(parent, nil)
	copy(parent[i+1:], parent[i:])
	parent[i] = value
	p.put(parent)
	return nil
}

func (p *place) remove() error {
	switch parent := p.parent.(type) {
	case map[string]any:
		if _, ok := parent[p.key]; !ok {
			return fmt.Errorf("Unable to remove nonexistent key: %s: %w", p.key, errMissing) // text of kube-apiserver
		}
		delete(parent, p.key)
	case []any:
		i, err := p.index(len(parent))
		if err != nil {
			return err
		}
		if err := p.doc.shift(len(parent) - i - 1); err != nil {
			return err
		}
		copy(parent[i:], parent[i+1:])
		parent[len(parent)-1] = nil
		p.put(parent[:len(parent)-1])
	}
	return nil
}

func (p *place) index(length int) (int, error) {
	n, err := strconv.Atoi(p.key)
	if err != nil {
		return 0, err
	}
	return normalise(n, length)
}

// normalise checks an index against the length; negative ones count from the end.
func normalise(n, length int) (int, error) {
	i := n
	if i < 0 {
		i += length
	}
	if i < 0 || i >= length {
		return 0, fmt.Errorf("Unable to access invalid index: %d: %w", n, errInvalidIndex) // text of kube-apiserver
	}
	return i, nil
}

// errDepth: the result could not be decoded again.
var errDepth = fmt.Errorf("the patched document would nest deeper than %d levels", maxDepth)

// measure returns the approximate size of a value as JSON, in bytes. It fails with
// errDepth if the value nests deeper than levels.
func measure(value any, levels int) (size int, err error) {
	switch value := value.(type) {
	case map[string]any:
		if levels == 0 {
			return 0, errDepth
		}
		size = 2
		for k, v := range value {
			s, err := measure(v, levels-1)
			if err != nil {
				return 0, err
			}
			size += len(k) + 4 + s
		}
		return size, nil
	case []any:
		if levels == 0 {
			return 0, errDepth
		}
		size = 2
		for _, v := range value {
			s, err := measure(v, levels-1)
			if err != nil {
				return 0, err
			}
			size += 1 + s
		}
		return size, nil
	case string:
		return len(value) + 2, nil
	default:
		return 8, nil
	}
}

// equal compares values; an integer and a fraction differ even if they denote the same
// number, as in JSON texts.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}
