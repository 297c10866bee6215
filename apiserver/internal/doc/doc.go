// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doc is the form that a custom object has while a request is under way. Package
// resource shows its type, [Doc], to those who write rules; the functions that take a Doc
// apart without decoding it are for the packages of the server.
package doc

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/internal/jsontext"
)

// Doc is an object without a Go type while a request is under way: an object of a custom
// resource. Its metadata, managedFields aside, is decoded; every other member is canonical JSON
// text, which is compared, merged and stored without being decoded.
//
// [Doc.Content] returns a copy as maps, and [Doc.SetContent] takes a changed one back; labels, finalizers and the rest of the metadata have methods of their own.
// The zero value is an object without members. A Doc is not safe for concurrent use while
// it is changed; copies share nothing that can be changed.
type Doc struct {
	members []member // in the order of their names
	// metadata is nil if the object has none or, then it is in members, if it is no object.
	metadata map[string]any
	record   Value // metadata.managedFields
}

type member struct {
	name  string
	value Value
}

var _ interface {
	runtime.Object
	schema.ObjectKind
} = (*Doc)(nil)

// New returns an object with a content, which must not be changed any more.
func New(content map[string]any) *Doc {
	d := &Doc{}
	d.SetContent(content)
	return d
}

// Parse decodes the JSON of an object. Members that have no canonical text, such as 1.0, which
// would be read as an integer, are decoded. The result shares the memory of text, which must
// not be changed any more.
func Parse(text []byte) (*Doc, error) {
	if d, plain := ParseFast(text); plain {
		return d, nil
	}
	var content map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &content); err != nil {
		return nil, err
	}
	return New(content), nil
}

// ParseFast is [Parse] for plain JSON; false leaves the text to the library, which decodes it
// or returns the error.
//
//steer:fast decode
func ParseFast(text []byte) (*Doc, bool) {
	d := &Doc{members: make([]member, 0, 4)}
	ok := jsontext.Members(text, func(name string, at jsontext.Position) bool {
		if name == "metadata" && at.IsObject() {
			return d.parseMetadata(at)
		}
		value, ok := read(at)
		i, has := d.find(name)
		if !ok || has || name == "metadata" && d.metadata != nil {
			return false
		}
		d.members = slices.Insert(d.members, i, member{name, value})
		return true
	})
	return d, ok
}

// parseMetadata reads the metadata. It is false if there is one already.
func (d *Doc) parseMetadata(at jsontext.Position) bool {
	if _, has := d.find("metadata"); has || d.metadata != nil {
		return false
	}
	d.metadata = make(map[string]any, 8)
	return at.Members(func(name string, at jsontext.Position) (ok bool) {
		if name == "managedFields" {
			had := d.record.Exists()
			d.record, ok = read(at)
			return ok && !had
		}
		n := len(d.metadata)
		d.metadata[name], ok = at.Value()
		return ok && len(d.metadata) == n+1
	})
}

// find returns the place of a member.
func (d *Doc) find(name string) (at int, has bool) {
	for at < len(d.members) && d.members[at].name < name {
		at++
	}
	return at, at < len(d.members) && d.members[at].name == name
}

// Member returns a member other than metadata.
func (d *Doc) Member(name string) Value {
	if at, has := d.find(name); has {
		return d.members[at].value
	}
	return Value{}
}

// SetMember sets a member other than metadata; a value that does not exist removes it.
func (d *Doc) SetMember(name string, value Value) {
	at, has := d.find(name)
	switch {
	case has && value.Exists():
		d.members[at].value = value
	case has:
		d.members = slices.Delete(d.members, at, at+1)
	case value.Exists():
		d.members = slices.Insert(d.members, at, member{name, value})
	}
}

// Has reports whether the object has a member.
func (d *Doc) Has(name string) bool {
	_, has := d.find(name)
	return has || name == "metadata" && d.metadata != nil
}

// Len is the number of members.
func (d *Doc) Len() int {
	if d.metadata != nil {
		return len(d.members) + 1
	}
	return len(d.members)
}

// Content returns the object as decoded JSON: a copy, which the caller may change. With names
// it has those members alone.
func (d *Doc) Content(names ...string) map[string]any {
	out := make(map[string]any, max(len(names), len(d.members)+1))
	if len(names) == 0 {
		for i := range d.members {
			out[d.members[i].name] = d.members[i].value.Decode()
		}
		names = []string{"metadata"}
	}
	for _, name := range names {
		if name != "metadata" || d.metadata == nil {
			if value := d.Member(name); value.Exists() {
				out[name] = value.Decode()
			}
			continue
		}
		metadata := runtime.DeepCopyJSON(d.metadata)
		if d.record.Exists() {
			metadata["managedFields"] = d.record.Decode()
		}
		out[name] = metadata
	}
	return out
}

// SetContent gives the object another content, which must not be changed any more. With names
// only those members are set, or removed if the content does not have them.
func (d *Doc) SetContent(content map[string]any, names ...string) {
	if len(names) == 0 {
		*d = Doc{members: make([]member, 0, len(content))}
		for name, value := range content {
			d.set(name, value)
		}
		return
	}
	for _, name := range names {
		if value, has := content[name]; has {
			d.set(name, value)
			continue
		}
		d.SetMember(name, Value{})
		if name == "metadata" {
			d.metadata, d.record = nil, Value{}
		}
	}
}

// set sets a member to a decoded value.
func (d *Doc) set(name string, value any) {
	if name != "metadata" {
		d.SetMember(name, Of(value))
		return
	}
	metadata, ok := value.(map[string]any)
	if !ok || metadata == nil {
		d.metadata, d.record = nil, Value{}
		d.SetMember(name, Of(value))
		return
	}
	d.SetMember(name, Value{})
	d.metadata, d.record = maps.Clone(metadata), Value{}
	if record, has := metadata["managedFields"]; has {
		d.record = Of(record)
		delete(d.metadata, "managedFields")
	}
}

// SetMetadata gives the object the metadata of another one.
func (d *Doc) SetMetadata(of *Doc) {
	d.SetMember("metadata", of.Member("metadata"))
	d.metadata, d.record = maps.Clone(of.metadata), of.record
}

// Copy returns a copy.
func (d *Doc) Copy() *Doc {
	return &Doc{slices.Clone(d.members), maps.Clone(d.metadata), d.record}
}

// DeepCopyObject implements [runtime.Object].
func (d *Doc) DeepCopyObject() runtime.Object { return d.Copy() }

// MarshalJSON returns the object as clients and webhooks get it: with sorted members.
func (d *Doc) MarshalJSON() ([]byte, error) {
	size := 1024 + len(d.record.text)
	for i := range d.members {
		size += len(d.members[i].name) + len(d.members[i].value.text)
	}
	out := append(make([]byte, 0, size), '{')
	var err error
	wrote := d.metadata == nil
	for i := 0; i < len(d.members) || !wrote; {
		if i == len(d.members) || !wrote && d.members[i].name > "metadata" {
			if out, err = d.appendMetadata(jsontext.AppendName(out, 1, "metadata")); err != nil {
				return nil, err
			}
			wrote = true
			continue
		}
		if out, err = d.members[i].value.append(jsontext.AppendName(out, 1, d.members[i].name)); err != nil {
			return nil, err
		}
		i++
	}
	return append(out, '}'), nil
}

func (d *Doc) appendMetadata(out []byte) ([]byte, error) {
	var few [16]string
	names := few[:0]
	for name := range d.metadata {
		names = append(names, name)
	}
	if d.record.Exists() {
		names = append(names, "managedFields")
	}
	slices.Sort(names)
	out = append(out, '{')
	begin := len(out)
	var err error
	for _, name := range names {
		out = jsontext.AppendName(out, begin, name)
		if name == "managedFields" {
			out, err = d.record.append(out)
		} else {
			out, err = jsontext.AppendValue(out, d.metadata[name])
		}
		if err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// UnmarshalJSON decodes an object.
func (d *Doc) UnmarshalJSON(text []byte) error {
	read, err := Parse(slices.Clone(text))
	if err == nil {
		*d = *read
	}
	return err
}

// Equal reports whether two objects have the same content.
func (d *Doc) Equal(other *Doc) bool {
	return d.EqualBeyondMetadata(other) && d.record.Equal(other.record) && jsontext.Equal(d.metadata, other.metadata)
}

// EqualBeyondMetadata reports whether two objects have the same content but for their metadata.
func (d *Doc) EqualBeyondMetadata(other *Doc) bool {
	return slices.EqualFunc(d.members, other.members, func(a, b member) bool { return a.name == b.name && a.value.Equal(b.value) })
}

// Each calls do with the members of two objects, in the order of their names and as one of
// them or both have them, until it returns false. Metadata that is an object is not among them.
func Each(a, b *Doc, do func(name string, a, b Value) bool) bool {
	x, y := a.members, b.members
	for len(x) > 0 || len(y) > 0 {
		var order int
		switch {
		case len(x) == 0:
			order = 1
		case len(y) == 0:
			order = -1
		default:
			order = cmp.Compare(x[0].name, y[0].name)
		}
		var name string
		var valueA, valueB Value
		if order <= 0 {
			name, valueA, x = x[0].name, x[0].value, x[1:]
		}
		if order >= 0 {
			name, valueB, y = y[0].name, y[0].value, y[1:]
		}
		if !do(name, valueA, valueB) {
			return false
		}
	}
	return true
}

// Metadata returns the metadata without managedFields, which must not be changed; ok is false
// if it is no object.
func Metadata(d *Doc) (metadata map[string]any, ok bool) { return d.metadata, d.metadata != nil }

// ManagedFields returns metadata.managedFields.
func ManagedFields(d *Doc) Value { return d.record }

// SetManagedFields sets metadata.managedFields; a value that does not exist removes them.
func SetManagedFields(d *Doc, record Value) {
	if d.metadata == nil && record.Exists() {
		d.set("metadata", map[string]any{})
	}
	d.record = record
}
