// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"maps"
	"slices"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/internal/jsontext"
)

// ApplyDoc implements [Patch]: members that the patch does not have are not decoded, and an
// object is merged as text.
func (p *mergePatch) ApplyDoc(d *doc.Doc) (*doc.Doc, error) {
	out := d.Copy()
	for name, value := range p.body {
		was := d.Member(name)
		switch metadata, ok := doc.Metadata(d); {
		case name == "metadata" && ok:
			mergeMetadata(out, metadata, value)
		case value == nil:
			out.SetMember(name, doc.Value{})
		default:
			if text, ok := mergeText(was, value); ok {
				out.SetMember(name, doc.OfText(text))
				continue
			}
			out.SetContent(merge(map[string]any{name: was.Decode()}, map[string]any{name: value}), name)
		}
	}
	return out, nil
}

// mergeMetadata merges a value into metadata that is an object.
func mergeMetadata(out *doc.Doc, metadata map[string]any, value any) {
	record := doc.ManagedFields(out)
	patch, _ := value.(map[string]any)
	if _, changed := patch["managedFields"]; changed && record.Exists() {
		metadata = maps.Clone(metadata)
		metadata["managedFields"] = record.Decode()
		record = doc.Value{}
	}
	out.SetContent(merge(map[string]any{"metadata": metadata}, map[string]any{"metadata": value}), "metadata")
	if patch != nil && record.Exists() {
		doc.SetManagedFields(out, record)
	}
}

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
