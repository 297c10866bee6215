// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package message reads protobuf messages into the Go types of Kubernetes, as
// the Unmarshal that is generated for them does, but for a cache: in one pass,
// with lists and maps of exactly their size, strings that come again kept once,
// and, if wanted, equal parts of different objects in common.
//
// It is driven by the protobuf tags of the types. What it does not expect, be it
// a type, an encoding that no server sends, or a mistake in the message, it
// leaves to Unmarshal, which decides what the message means.
package message

import (
	"reflect"
)

// unmarshaler is what generated types implement.
type unmarshaler interface{ Unmarshal([]byte) error }

// Options of a [Decoder].
type Options struct {
	// Share lets objects have parts in common that were encoded alike: lists, maps
	// and what pointers point to. It is for objects that are not changed.
	Share bool
	// DropManagedFields leaves metadata.managedFields out.
	DropManagedFields bool
}

// Decoder reads the messages of one stream. What it remembers of them is
// bounded, and what does not come again is forgotten. It is for one goroutine.
type Decoder struct {
	opts  Options
	plans map[reflect.Type]*plan
	texts texts
	parts parts
}

// NewDecoder returns a Decoder that remembers nothing yet.
func NewDecoder(o Options) *Decoder {
	return &Decoder{opts: o, plans: map[reflect.Type]*plan{}}
}

// Decode reads data into a pointer to an empty struct. When it returns false
// data is for the type's own Unmarshal, and into is half done: start with another.
func (d *Decoder) Decode(data []byte, into any) bool {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return false
	}
	p := d.planOf(v.Type().Elem())
	return p != nil && d.message(p, data, v.Elem())
}

// message reads the fields of a struct. Encoders write them by number; whatever
// is in another order is not for us, so no field comes twice.
func (d *Decoder) message(p *plan, data []byte, v reflect.Value) bool {
	last := 0
	for len(data) > 0 {
		head, ok := nextTag(data)
		if !ok || head.number < last {
			return false
		}
		f := p.field(head.number)
		if f == nil || f.dropped {
			_, rest, err := Next(data)
			if err != nil {
				return false
			}
			data, last = rest, head.number
			continue
		}
		if head.number == last || head.wire != f.wire {
			return false
		}
		last = head.number
		if data, ok = d.value(f, head, data, v.Field(f.index)); !ok {
			return false
		}
	}
	return true
}

// value reads a field, with all its repetitions, and returns what follows it.
func (d *Decoder) value(f *field, head tag, data []byte, v reflect.Value) (rest []byte, ok bool) {
	switch {
	case f.repeated:
		count, size, ok := run(data, head)
		if !ok {
			return nil, false
		}
		return data[size:], d.repeated(f, head, data[:size], count, v)
	case f.wire == wireBytes:
		content, rest, ok := nextBytes(data[head.size:])
		return rest, ok && d.single(f, content, v)
	}
	number, rest, ok := nextNumber(data[head.size:], f.wire)
	if !ok {
		return nil, false
	}
	if f.pointer {
		v.Set(d.numberPointer(f, number))
		return rest, true
	}
	f.value.setNumber(v, number)
	return rest, true
}

// single reads a field of bytes that is not repeated.
func (d *Decoder) single(f *field, content []byte, v reflect.Value) bool {
	if !f.pointer {
		return d.content(f, content, v)
	}
	shared := d.shares(f, content)
	if shared {
		if known, ok := d.parts.get(f, content); ok {
			v.Set(known)
			return true
		}
	}
	p := reflect.New(f.value.typ)
	if !d.content(f, content, p.Elem()) {
		return false
	}
	if shared {
		d.parts.put(f, content, p)
	}
	v.Set(p)
	return true
}

// content reads one value of a length-delimited field.
func (d *Decoder) content(f *field, content []byte, v reflect.Value) bool {
	switch f.value.form {
	case text:
		v.SetString(d.text(f, content))
		return true
	case octets:
		v.SetBytes(append(make([]byte, 0, len(content)), content...))
		return true
	case nested:
		if !f.planned {
			f.planned, f.plan = true, d.planOf(f.value.typ)
		}
		if f.plan != nil {
			return d.message(f.plan, content, v)
		}
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // one that travels is there, be it empty
		}
		m, ok := v.Addr().Interface().(unmarshaler)
		return ok && m.Unmarshal(content) == nil
	}
	return false
}

// numberPointer is a pointer to a number: a shared one if the last was the same.
func (d *Decoder) numberPointer(f *field, number uint64) reflect.Value {
	if f.lastPointer.IsValid() && f.lastNumber == number {
		return f.lastPointer
	}
	p := reflect.New(f.value.typ)
	f.value.setNumber(p.Elem(), number)
	if d.opts.Share {
		f.lastNumber, f.lastPointer = number, p
	}
	return p
}

// repeated reads a list or a map, which data is all of.
func (d *Decoder) repeated(f *field, head tag, data []byte, count int, v reflect.Value) bool {
	shared := d.shares(f, data)
	if shared {
		if known, ok := d.parts.get(f, data); ok {
			v.Set(known)
			return true
		}
	}
	var made reflect.Value
	var ok bool
	switch {
	case f.key != nil:
		made, ok = d.entries(f, head, data, count)
	default:
		made, ok = d.elements(f, head, data, count)
	}
	if !ok {
		return false
	}
	if shared {
		d.parts.put(f, data, made)
	}
	v.Set(made)
	return true
}

func (d *Decoder) elements(f *field, head tag, data []byte, count int) (reflect.Value, bool) {
	list := reflect.MakeSlice(f.typ, count, count)
	for i := range count {
		element := list.Index(i)
		if f.pointer {
			p := reflect.New(f.value.typ)
			element.Set(p)
			element = p.Elem()
		}
		if f.wire != wireBytes {
			number, rest, ok := nextNumber(data[head.size:], f.wire)
			if !ok {
				return list, false
			}
			f.value.setNumber(element, number)
			data = rest
			continue
		}
		content, rest, ok := nextBytes(data[head.size:])
		if !ok || !d.content(f, content, element) {
			return list, false
		}
		data = rest
	}
	return list, true
}

// entries reads a map. Each entry is a message of a key and a value; encoders
// write both, whatever they are.
func (d *Decoder) entries(f *field, head tag, data []byte, count int) (reflect.Value, bool) {
	var plain map[string]string
	var made reflect.Value
	if f.typ == stringMap {
		plain = make(map[string]string, count)
		made = reflect.ValueOf(plain)
	} else {
		made = reflect.MakeMapWithSize(f.typ, count)
	}
	for range count {
		entry, rest, ok := nextBytes(data[head.size:])
		if !ok {
			return made, false
		}
		data = rest
		key, value, ok := splitEntry(entry)
		if !ok {
			return made, false
		}
		name := d.text(f.key, key)
		if plain != nil {
			plain[name] = d.text(f, value)
			continue
		}
		v := reflect.New(f.value.typ).Elem()
		if !d.content(f, value, v) {
			return made, false
		}
		made.SetMapIndex(reflect.ValueOf(name).Convert(f.typ.Key()), v)
	}
	return made, true
}

// splitEntry takes an entry of a map apart.
func splitEntry(entry []byte) (key, value []byte, ok bool) {
	const keyTag, valueTag = 1<<3 | wireBytes, 2<<3 | wireBytes
	if len(entry) == 0 || entry[0] != keyTag {
		return nil, nil, false
	}
	key, rest, ok := nextBytes(entry[1:])
	if !ok || len(rest) == 0 || rest[0] != valueTag {
		return nil, nil, false
	}
	value, rest, ok = nextBytes(rest[1:])
	return key, value, ok && len(rest) == 0
}
