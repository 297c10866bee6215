// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"slices"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// mergeRaw is [merge] for a raw member. ok is false if the member must be decoded.
//
//steer:fast raw
func mergeRaw(current wire.RawValue, value any) (merged any, ok bool) {
	patch, isObject := value.(map[string]any)
	if !isObject || !current.IsObject() {
		return nil, false
	}
	m := wire.NewRawMerge(current)
	if !mergeObject(m, patch) {
		return nil, false
	}
	return m.Value(), true
}

// mergeObject merges the object that the reader is positioned at.
func mergeObject(m *wire.RawMerge, patch map[string]any) bool {
	var few [16]string
	names := few[:0]
	for name := range patch {
		names = append(names, name)
	}
	slices.Sort(names)
	put := func(begin int, name string, value any) bool {
		return value == nil || m.Put(begin, name, value)
	}
	missing := func(begin int, name string) bool { return put(begin, name, withoutNulls(patch[name])) }
	return m.Object(names, missing, func(begin int, name string) bool {
		value := patch[name]
		isObject := m.Doc.Kind() == '{'
		inner, merges := value.(map[string]any)
		switch {
		case isObject && merges:
			m.Begin(begin, name)
			return mergeObject(m, inner)
		case !isObject:
			value = withoutNulls(value)
		}
		m.Doc.Skip()
		return put(begin, name, value)
	})
}
