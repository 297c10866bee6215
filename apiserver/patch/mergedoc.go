// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"slices"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/internal/jsontext"
)

// mergeText merges a value into a member that is an object, as text.
//
//steer:fast decode
func mergeText(current doc.Value, value any) (merged jsontext.Text, ok bool) {
	patch, isObject := value.(map[string]any)
	text, isText := current.Text()
	if !isObject || !isText || !text.IsObject() {
		return "", false
	}
	m := jsontext.NewTextMerge(text)
	if !mergeObject(m, patch) {
		return "", false
	}
	return m.Value(), true
}

// mergeObject merges the object that the reader is positioned at.
func mergeObject(m *jsontext.TextMerge, patch map[string]any) bool {
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
