// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"maps"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// Merge returns an object with the fields of a configuration set, sharing what
// does not change. false means that there is more to it than setting fields.
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
		if has && current == nil {
			return nil, false
		}
		switch v := value.(type) {
		case map[string]any:
			if !field.object || len(v) == 0 {
				return nil, false
			}
			if field.wholeObject {
				if !field.fits(v) || has && !field.fits(current) {
					return nil, false
				}
				break
			}
			child, isObject := current.(map[string]any)
			if has && !isObject {
				return nil, false
			}
			if !has {
				child = map[string]any{}
			}
			merged, ok := Merge(field, child, v)
			if !ok {
				return nil, false
			}
			value = merged
		case []any:
			if !field.fits(v) || has && !field.fits(current) {
				return nil, false
			}
		default:
			if !field.holds(v) || has && !field.holds(current) {
				return nil, false
			}
		}
		if !has || !wire.Equal(current, value) {
			out[name] = value
		}
	}
	return out, true
}
