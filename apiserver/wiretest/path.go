// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"fmt"
	"maps"
	"strings"
)

// path names fields in a decoded document.
type path []segment

// segment is one field name, with the elements to select if it is a list.
type segment struct {
	name         string
	field, value string
}

func parsePath(text string) path {
	var p path
	var current strings.Builder
	flush := func() {
		name := current.String()
		current.Reset()
		seg := segment{name: name}
		if open := strings.IndexByte(name, '['); open >= 0 && strings.HasSuffix(name, "]") {
			seg.name = name[:open]
			seg.field, seg.value, _ = strings.Cut(name[open+1:len(name)-1], "=")
		}
		p = append(p, seg)
	}
	brackets := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			current.WriteByte(text[i])
		case c == '.' && brackets == 0:
			flush()
		default:
			switch c {
			case '[':
				brackets++
			case ']':
				brackets--
			}
			current.WriteByte(c)
		}
	}
	flush()
	return p
}

func (s segment) picks(element any) bool {
	if s.field == "" {
		return true
	}
	for _, found := range parsePath(s.field).find(element) {
		if fmt.Sprint(found) == s.value {
			return true
		}
	}
	return false
}

// find returns the values at the path.
func (p path) find(value any) []any {
	if list, ok := value.([]any); ok {
		var found []any
		for _, element := range list {
			found = append(found, p.find(element)...)
		}
		return found
	}
	if len(p) == 0 {
		return []any{value}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	child, ok := object[p[0].name]
	if !ok {
		return nil
	}
	if list, ok := child.([]any); ok {
		var found []any
		for _, element := range list {
			if p[0].picks(element) {
				found = append(found, p[1:].find(element)...)
			}
		}
		return found
	}
	return p[1:].find(child)
}

// keepOnly returns a copy of value with only the given paths.
func keepOnly(value any, paths []path) any {
	switch typed := value.(type) {
	case []any:
		kept := make([]any, 0, len(typed))
		for _, element := range typed {
			kept = append(kept, keepOnly(element, paths))
		}
		return kept
	case map[string]any:
		kept := map[string]any{}
		for key, child := range typed {
			var below []path
			pick := segment{}
			whole := false
			for _, p := range paths {
				if p[0].name != key {
					continue
				}
				pick = p[0]
				if len(p) == 1 {
					whole = true
				} else {
					below = append(below, p[1:])
				}
			}
			if !whole && below == nil {
				continue
			}
			if list, ok := child.([]any); ok {
				child = pickElements(list, pick)
			}
			if !whole {
				child = keepOnly(child, below)
			}
			kept[key] = child
		}
		return kept
	}
	return value
}

// under returns what of paths is below a field, nil for all of it, and whether the field is kept
// at all. No paths keep all.
func under(paths []path, name string) (below []path, kept bool) {
	for _, p := range paths {
		switch {
		case p[0].name != name:
		case len(p) == 1, p[0].field != "": // elements are picked by fields that may not be kept
			return nil, true
		default:
			below = append(below, p[1:])
		}
	}
	return below, paths == nil || below != nil
}

func pickElements(list []any, seg segment) []any {
	picked := make([]any, 0, len(list))
	for _, element := range list {
		if seg.picks(element) {
			picked = append(picked, element)
		}
	}
	return picked
}

// apply returns a copy of value in which the list at the filter's path holds
// only the matching elements.
func (f filter) apply(value any) any {
	return f.applyAt(value, f.list)
}

func (f filter) applyAt(value any, at path) any {
	if list, ok := value.([]any); ok {
		if len(at) == 0 {
			return pickElements(list, segment{field: f.field, value: f.value})
		}
		changed := make([]any, len(list))
		for i, element := range list {
			changed[i] = f.applyAt(element, at)
		}
		return changed
	}
	object, ok := value.(map[string]any)
	if !ok || len(at) == 0 {
		return value
	}
	changed := maps.Clone(object)
	if child, ok := changed[at[0].name]; ok {
		changed[at[0].name] = f.applyAt(child, at[1:])
	}
	return changed
}
