// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"maps"
	"slices"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// Merge returns an object with the fields of a configuration set, sharing the unchanged
// parts. false means that the configuration does more than setting fields.
//
//steer:fast outcomes
func Merge(n *Type, object, configuration map[string]any) (map[string]any, bool) {
	if n == nil || !n.object || n.wholeObject || object == nil || len(configuration) == 0 {
		return nil, false
	}
	out := maps.Clone(object)
	for name, value := range configuration {
		field := n.field(name)
		if field == nil {
			return nil, false
		}
		current, has := object[name]
		if has && typeOf(current) == null {
			return nil, false
		}
		configured, isObject := value.(map[string]any)
		raw, isRaw := current.(wire.RawValue)
		switch {
		case !isObject || field.wholeObject:
			if !replaces(field, has, current, value) {
				return nil, false
			}
		case !field.object || len(configured) == 0:
			return nil, false
		case isRaw:
			m := wire.NewRawMerge(raw)
			if !mergeObject(m, field, configured) {
				return nil, false
			}
			value = m.Value()
		default:
			child, isObject := current.(map[string]any)
			if has && !isObject {
				return nil, false
			}
			if !has {
				child = map[string]any{}
			}
			merged, ok := Merge(field, child, configured)
			if !ok {
				return nil, false
			}
			value = merged
		}
		if !has || !wire.Equal(current, value) {
			out[name] = value
		}
	}
	return out, true
}

// replaces reports whether an atomic value may replace the current one, or be added if
// there is none.
func replaces(n *Type, has bool, current, value any) bool {
	if n == nil {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		if !n.wholeObject || len(v) == 0 {
			return false
		}
	case []any:
	default:
		return n.holds(value) && (!has || n.holds(current))
	}
	return n.fits(value) && (!has || n.fits(current))
}

// mergeObject is [Merge] for the current value of the reader.
func mergeObject(m *wire.RawMerge, n *Type, configuration map[string]any) bool {
	if n == nil || !n.object || n.wholeObject || len(configuration) == 0 || m.Doc.Kind() != '{' {
		return false
	}
	missing := func(begin int, name string) bool {
		field, value := n.field(name), configuration[name]
		if inner, isObject := value.(map[string]any); isObject && field != nil && !field.wholeObject {
			merged, ok := Merge(field, map[string]any{}, inner)
			return ok && m.Put(begin, name, merged)
		}
		return replaces(field, false, nil, value) && m.Put(begin, name, value)
	}
	return m.Object(slices.Sorted(maps.Keys(configuration)), missing, func(begin int, name string) bool {
		field, value := n.field(name), configuration[name]
		if inner, isObject := value.(map[string]any); isObject && field != nil && !field.wholeObject {
			m.Begin(begin, name)
			return mergeObject(m, field, inner)
		}
		return replaces(field, true, m.Doc.Take(), value) && m.Put(begin, name, value)
	})
}
