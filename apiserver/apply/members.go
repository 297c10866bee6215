// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"slices"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/internal/jsontext"
)

// docObject returns an object without a Go type as text, its metadata on demand; false if it has
// none.
func docObject(d *doc.Doc, full bool) (fields.Object, bool) {
	out := make(fields.Object, 0, d.Len())
	if metadata, has := doc.Metadata(d); has && full {
		text, ok := jsontext.EncodeValue(metadata)
		if !ok {
			return nil, false
		}
		out = append(out, fields.Member{Name: "metadata", Value: text})
	}
	ok := doc.Each(d, d, func(name string, value, _ doc.Value) bool {
		text, ok := value.Text()
		out = append(out, fields.Member{Name: name, Value: text})
		return ok && name != "metadata" // it is no object
	})
	out.Sort()
	return out, ok
}

// docObjects is docObject for two objects; metadata that are the same in both are in neither.
func docObjects(a, b *doc.Doc) (before, after fields.Object, ok bool) {
	was, _ := doc.Metadata(a)
	is, _ := doc.Metadata(b)
	same := jsontext.Equal(was, is)
	if before, ok = docObject(a, !same); ok {
		after, ok = docObject(b, !same)
	}
	return before, after, ok
}

// typedObject returns a typed object as text; false if it has none.
func (m *FieldManager) typedObject(obj Object) (fields.Object, bool) {
	v := reflect.ValueOf(obj)
	if m.binding.Endpoint.New == nil || v.Kind() != reflect.Pointer {
		return nil, false
	}
	shallow := reflect.New(v.Type().Elem())
	shallow.Elem().Set(v.Elem())
	object, ok := shallow.Interface().(Object)
	if !ok {
		return nil, false
	}
	object.SetManagedFields(nil)
	object.GetObjectKind().SetGroupVersionKind(m.binding.Kind)
	text, ok := typed.EncodeCanonically(object)
	return fields.Split(text), ok
}

// current returns the object that an apply finds, and its managedFields. false means that it is
// left to the library, for example because no manager owns its fields yet.
func (m *FieldManager) current(live Object) (object fields.Object, record []entry, ok bool) {
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
	object, ok = docObject(old, true)
	return object, record, ok
}

// currentTyped is current for a typed object.
func (m *FieldManager) currentTyped(live Object) (object fields.Object, record []entry, ok bool) {
	if record, ok = m.typedRecord(live.GetManagedFields()); !ok {
		return nil, nil, false
	}
	if object, ok = m.typedObject(live); !ok || len(record) > 0 {
		return object, record, ok
	}
	empty, ok := m.typedObject(m.binding.Endpoint.New())
	return object, nil, ok && slices.Equal(object, empty)
}

// built returns the object after an apply, without managedFields; same is set if it is as it
// was before. false means that its text is not that of an object of the endpoint.
func (m *FieldManager) built(live Object, before, after fields.Object, same bool) (Object, bool) {
	old, isDoc := live.(*doc.Doc)
	switch {
	case isDoc:
		return builtDoc(old, before, after), true
	case same:
		return live.DeepCopyObject().(Object), true
	}
	size := len("{}")
	for i := range after {
		size += len(after[i].Name) + len(after[i].Value) + len(`"":,`)
	}
	text := append(make([]byte, 0, size), '{')
	for i := range after {
		text = append(jsontext.AppendName(text, 1, after[i].Name), after[i].Value...)
	}
	out := m.binding.Endpoint.New()
	return out, typed.Decode(append(text, '}'), out) == nil
}

// builtDoc is built for objects without a Go type.
func builtDoc(old *doc.Doc, before, after fields.Object) Object {
	out := old.Copy()
	for i := range before {
		if name := before[i].Name; after.Get(name) == "" {
			out.SetContent(nil, name)
		}
	}
	for i := range after {
		name, value := after[i].Name, after[i].Value
		switch {
		case before.Get(name) == value:
		case name == "metadata":
			out.SetContent(map[string]any{name: value.Decode()}, name)
		default:
			out.SetMember(name, doc.OfText(value))
		}
	}
	return out
}
