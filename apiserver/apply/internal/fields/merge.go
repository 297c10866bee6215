// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"maps"
	"slices"
	"unsafe"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// Merge returns an object with the fields of a configuration set, sharing the unchanged
// parts. false means that the configuration does more than setting fields.
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
			m := merging{live: raw.Reader(), out: make([]byte, 0, len(raw)+128)}
			if !m.object(field, configured) {
				return nil, false
			}
			value = wire.RawValue(unsafe.String(unsafe.SliceData(m.out), len(m.out)))
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

// merging writes a raw object with the fields of a configuration set.
type merging struct {
	live wire.RawReader
	out  []byte
}

// object is [Merge] for the current value of the reader.
func (m *merging) object(n *Type, configuration map[string]any) bool {
	if n == nil || !n.object || n.wholeObject || len(configuration) == 0 || m.live.Kind() != '{' {
		return false
	}
	names := slices.Sorted(maps.Keys(configuration))
	m.out = append(m.out, '{')
	begin := len(m.out)
	for {
		name, more := m.live.Member()
		for len(names) > 0 && (!more || names[0] < name) {
			if !m.set(n.field(names[0]), begin, names[0], configuration[names[0]]) {
				return false
			}
			names = names[1:]
		}
		if !more {
			break
		}
		if len(names) == 0 || names[0] != name {
			m.out = wire.AppendName(m.out, begin, name)
			m.out = append(m.out, m.live.Take()...)
			continue
		}
		names = names[1:]
		field, value := n.field(name), configuration[name]
		if inner, isObject := value.(map[string]any); isObject && field != nil && !field.wholeObject {
			m.out = wire.AppendName(m.out, begin, name)
			if !m.object(field, inner) {
				return false
			}
			continue
		}
		if current := m.live.Take(); !replaces(field, true, current, value) || !m.put(begin, name, value) {
			return false
		}
	}
	m.out = append(m.out, '}')
	return true
}

// set writes a member that did not exist.
func (m *merging) set(n *Type, begin int, name string, value any) bool {
	if inner, isObject := value.(map[string]any); isObject && n != nil && !n.wholeObject {
		merged, ok := Merge(n, map[string]any{}, inner)
		return ok && m.put(begin, name, merged)
	}
	return replaces(n, false, nil, value) && m.put(begin, name, value)
}

// put writes a member.
func (m *merging) put(begin int, name string, value any) bool {
	m.out = wire.AppendName(m.out, begin, name)
	raw, ok := wire.EncodeValue(value)
	m.out = append(m.out, raw...)
	return ok
}
