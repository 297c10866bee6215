// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"

	"github.com/steer-dev/steer/apiserver/internal/doc"
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
func textOf(content map[string]any, name string) wire.Text {
	text, _ := content[name].(wire.Text)
	return text
}

// textsOf returns an object without managedFields whose members are text.
func textsOf(d *doc.Doc) (map[string]any, bool) {
	out := make(map[string]any, d.Len())
	if metadata, has := doc.Metadata(d); has {
		text, ok := wire.EncodeValue(metadata)
		if !ok {
			return nil, false
		}
		out["metadata"] = text
	}
	return out, doc.Each(d, d, func(name string, value, _ doc.Value) bool {
		text, ok := value.Text()
		out[name] = text
		return ok
	})
}

// current returns the object that an apply finds: its members as text, without managedFields,
// and these. false means that it is left to the library, for example because no manager owns its
// fields yet.
func (m *Manager) current(live Object) (content map[string]any, record []entry, ok bool) {
	old, isDoc := live.(*doc.Doc)
	if !isDoc {
		return m.currentTyped(live)
	}
	if m.binding.Endpoint.New != nil || old.GroupVersionKind() != m.binding.Kind {
		return nil, nil, false
	}
	before, has, ok := rawManagedFields(old)
	if !ok {
		return nil, nil, false
	}
	if has {
		record, ok = m.entries(before)
		ok = ok && len(record) > 0
	} else {
		ok = old.Len() == 2 // apiVersion and kind: the object is new
	}
	if !ok {
		return nil, nil, false
	}
	content, ok = textsOf(old)
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
func encoded(obj Object) (wire.Text, bool) {
	text, _, err := wire.Encode(obj)
	if err != nil {
		return "", false
	}
	return wire.Canonicalize(text)
}

// built returns the object after an apply, without managedFields; same is set if it is as it
// was before. false means that its text is not that of an object of the endpoint.
func (m *Manager) built(live Object, before, after map[string]any, same bool) (Object, bool) {
	old, isDoc := live.(*doc.Doc)
	switch {
	case isDoc:
		return builtDoc(old, before, after), true
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

// builtDoc is built for objects without a Go type.
func builtDoc(old *doc.Doc, before, after map[string]any) Object {
	out := old.Copy()
	for name := range before {
		if _, kept := after[name]; !kept {
			out.SetContent(nil, name)
		}
	}
	for name, value := range after {
		switch {
		case before[name] == value:
		case name == "metadata":
			out.SetContent(map[string]any{name: textOf(after, name).Decode()}, name)
		default:
			out.SetMember(name, doc.OfText(textOf(after, name)))
		}
	}
	return out
}
