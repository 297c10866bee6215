// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// texts returns an object whose members are text.
func texts(content map[string]any) (map[string]any, bool) {
	out := make(map[string]any, len(content)+1)
	for name, value := range content {
		text, ok := wire.EncodeValue(value)
		if !ok {
			return nil, false
		}
		out[name] = text
	}
	return out, true
}

// textOf is a member of such an object; "" if it has none.
func textOf(content map[string]any, name string) wire.RawValue {
	text, _ := content[name].(wire.RawValue)
	return text
}

// current returns the object that an apply finds: its members as text, without managedFields,
// and these. false means that it is left to the library, for example because no manager owns its
// fields yet.
func (m *Manager) current(live Object) (content map[string]any, record []entry, ok bool) {
	old, isUnstructured := live.(*unstructured.Unstructured)
	if !isUnstructured {
		return m.currentTyped(live)
	}
	if m.binding.Endpoint.New != nil || old.GroupVersionKind() != m.binding.Kind {
		return nil, nil, false
	}
	before, has, ok := rawManagedFields(old)
	if !ok {
		return nil, nil, false
	}
	members := old.Object
	switch {
	case has:
		if record, ok = m.entries(before); !ok || len(record) == 0 {
			return nil, nil, false
		}
		metadata := maps.Clone(members["metadata"].(map[string]any))
		delete(metadata, "managedFields")
		members = maps.Clone(members)
		members["metadata"] = metadata
	case len(members) != 2: // apiVersion and kind: the object is new
		return nil, nil, false
	}
	content, ok = texts(members)
	return content, record, ok
}

// currentTyped is current for a typed object.
func (m *Manager) currentTyped(live Object) (content map[string]any, record []entry, ok bool) {
	v := reflect.ValueOf(live)
	if m.binding.Endpoint.New == nil || v.Kind() != reflect.Pointer {
		return nil, nil, false
	}
	if record, ok = m.typedRecord(live.GetManagedFields()); !ok {
		return nil, nil, false
	}
	shallow := reflect.New(v.Type().Elem())
	shallow.Elem().Set(v.Elem())
	object, ok := shallow.Interface().(Object)
	if !ok {
		return nil, nil, false
	}
	object.SetManagedFields(nil)
	object.GetObjectKind().SetGroupVersionKind(m.binding.Kind)
	text, ok := encoded(object)
	if !ok {
		return nil, nil, false
	}
	if len(record) == 0 {
		fresh := m.binding.Endpoint.New()
		fresh.GetObjectKind().SetGroupVersionKind(m.binding.Kind)
		if empty, ok := encoded(fresh); !ok || text != empty {
			return nil, nil, false
		}
	}
	content = make(map[string]any, 8)
	r := text.Reader()
	for name, more := r.Member(); more; name, more = r.Member() {
		content[name] = r.Take()
	}
	return content, record, true
}

// encoded is the canonical text of a typed object.
func encoded(obj Object) (wire.RawValue, bool) {
	text, _, err := wire.Encode(obj)
	if err != nil {
		return "", false
	}
	return wire.Canonicalize(text)
}

// built returns the object after an apply, without managedFields; same is set if it is as it
// was before. false means that its text is not that of an object of the endpoint.
func (m *Manager) built(live Object, before, after map[string]any, same bool) (Object, bool) {
	old, isUnstructured := live.(*unstructured.Unstructured)
	switch {
	case isUnstructured:
		return m.builtUnstructured(old, before, after), true
	case same:
		return live.DeepCopyObject().(Object), true
	}
	size := len("{}")
	for name := range after {
		size += len(name) + len(textOf(after, name)) + len(`"":,`)
	}
	text := append(make([]byte, 0, size), '{')
	for name := range after {
		text = append(wire.AppendName(text, 1, name), textOf(after, name)...)
	}
	out := m.binding.Endpoint.New()
	return out, wire.Decode(append(text, '}'), out) == nil
}

// builtUnstructured is built for unstructured objects. Members that changed are raw where
// members may be.
func (m *Manager) builtUnstructured(old *unstructured.Unstructured, before, after map[string]any) Object {
	out := &unstructured.Unstructured{Object: make(map[string]any, len(after)+1)}
	for name, value := range after {
		text, kept := textOf(after, name), old.Object[name]
		_, wasRaw := kept.(wire.RawValue)
		switch {
		case before[name] == value:
			out.Object[name] = kept
		case (wasRaw || m.binding.Endpoint.RawMembers) && name != "metadata" && name != "apiVersion" && name != "kind":
			out.Object[name] = text
		default:
			out.Object[name] = text.Decode()
		}
	}
	if metadata, ok := out.Object["metadata"].(map[string]any); ok && before["metadata"] == after["metadata"] {
		out.Object["metadata"] = maps.Clone(metadata)
	}
	return out
}
