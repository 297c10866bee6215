// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/internal/jsontext"
)

// maxUpdaters is how many updaters an object has before the entries of the oldest are merged
// into one.
const maxUpdaters = 10

// entry is one managedFields entry during a write.
type entry struct {
	manager, version, subresource string
	operation                     metav1.ManagedFieldsOperationType
	time                          time.Time // in whole seconds; zero: none
	// The entry before the write, typed or raw; none for a new one.
	typed       *metav1.ManagedFieldsEntry
	raw, fields jsontext.Text
	// set is the entry's set of fields after the write if it has changed; nil: fields.
	set     *fields.Tree
	changed bool
}

// compare orders entries as managedFields has them.
func (e entry) compare(other entry) int {
	return cmp.Or(
		strings.Compare(string(e.operation), string(other.operation)), e.time.Compare(other.time), strings.Compare(e.manager, other.manager),
		strings.Compare(e.version, other.version), strings.Compare(e.subresource, other.subresource),
	)
}

// read parses the fields of an entry.
func (e *entry) read() (*fields.Tree, bool) {
	if e.typed != nil {
		return fields.ReadText(e.typed.FieldsV1.GetRawString())
	}
	return fields.ReadRaw(e.fields)
}

// serverTypedEntries returns the managedFields of a typed object before a write, if
// they are as the server wrote them: few entries, in the version of the endpoint, and
// not changed by the client.
func (m *FieldManager) serverTypedEntries(live, obj Object) ([]entry, bool) {
	before := live.GetManagedFields()
	if m.binding.Subresource == "" {
		if sent := obj.GetManagedFields(); sent != nil && !sameManagedFields(before, sent) {
			return nil, false
		}
	}
	out, ok := m.typedRecord(before)
	return out, ok && len(out) < maxUpdaters
}

// typedRecord parses managedFields of a typed object that the server has written.
func (m *FieldManager) typedRecord(before []metav1.ManagedFieldsEntry) ([]entry, bool) {
	version := m.binding.Kind.GroupVersion().String()
	out := make([]entry, len(before), len(before)+1)
	for i := range before {
		e := &before[i]
		if e.APIVersion != version || e.FieldsType != "FieldsV1" || e.FieldsV1 == nil {
			return nil, false
		}
		out[i] = entry{manager: e.Manager, version: version, subresource: e.Subresource, operation: e.Operation, typed: e}
		if e.Time != nil {
			out[i].time = e.Time.UTC().Truncate(time.Second)
		}
		if out[i].repeats(out[:i]) {
			return nil, false
		}
	}
	return out, true
}

// repeats reports whether one of others has the same manager and operation.
func (e *entry) repeats(others []entry) bool {
	for i := range others {
		if o := &others[i]; o.manager == e.manager && o.operation == e.operation && o.subresource == e.subresource {
			return true
		}
	}
	return e.operation != metav1.ManagedFieldsOperationUpdate && e.operation != metav1.ManagedFieldsOperationApply
}

// sameManagedFields compares the managedFields of typed objects.
func sameManagedFields(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) || len(b) == 0 { // an empty list that is set asks to reset managedFields
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Manager != y.Manager || x.Operation != y.Operation || x.APIVersion != y.APIVersion || x.FieldsType != y.FieldsType ||
			x.Subresource != y.Subresource || !x.Time.Equal(y.Time) || !bytes.Equal(x.FieldsV1.GetRawBytes(), y.FieldsV1.GetRawBytes()) {
			return false
		}
	}
	return true
}

// serverEntries is serverTypedEntries for objects without a Go type.
func (m *FieldManager) serverEntries(live, obj *doc.Doc) ([]entry, bool) {
	before, has, ok := rawManagedFields(live)
	if !ok {
		return nil, false
	}
	if m.binding.Subresource == "" {
		sent, alsoHas, ok := rawManagedFields(obj)
		if !ok || alsoHas && (sent == "[]" || sent != before) {
			return nil, false
		}
	}
	if !has {
		return nil, true
	}
	out, ok := m.entries(before)
	return out, ok && len(out) < maxUpdaters
}

// entries parses managedFields that the server has written: in the version of the endpoint,
// and without repetitions. false means that they are not of this form.
func (m *FieldManager) entries(record jsontext.Text) ([]entry, bool) {
	if record[0] != '[' {
		return nil, false
	}
	version := m.binding.Kind.GroupVersion().String()
	out := make([]entry, 0, 4)
	for r := record.Reader(); r.Element(); {
		e, ok := readEntry(r.Take())
		if !ok || e.version != version || e.repeats(out) {
			return nil, false
		}
		out = append(out, e)
	}
	return out, true
}

// rawManagedFields returns the managedFields of an object, and whether they are set. ok is
// false if they are not of the expected type.
func rawManagedFields(obj *doc.Doc) (record jsontext.Text, has, ok bool) {
	if _, isObject := doc.Metadata(obj); !isObject {
		return "", false, !obj.Has("metadata")
	}
	value := doc.ManagedFields(obj)
	record, ok = value.Text()
	return record, value.Exists(), ok || !value.Exists()
}

// readEntry parses an entry as the server writes it.
func readEntry(raw jsontext.Text) (e entry, ok bool) {
	if !raw.IsObject() {
		return e, false
	}
	e.raw = raw
	fieldsType := ""
	r := raw.Reader()
	for name, more := r.Member(); more; name, more = r.Member() {
		if name == "fieldsV1" {
			e.fields = r.Take()
			continue
		}
		if r.Kind() != '"' {
			return e, false
		}
		switch text := r.Text(); name {
		case "manager":
			e.manager = text
		case "operation":
			e.operation = metav1.ManagedFieldsOperationType(text)
		case "apiVersion":
			e.version = text
		case "fieldsType":
			fieldsType = text
		case "subresource":
			e.subresource = text
		case "time":
			var err error
			if e.time, err = time.Parse(time.RFC3339, text); err != nil || len(text) != len("2006-01-02T15:04:05Z") || text[len(text)-1] != 'Z' {
				return e, false
			}
		default:
			return e, false
		}
	}
	return e, fieldsType == "FieldsV1" && e.fields.IsObject()
}

// typedEntries returns managedFields for a typed object; nil if there are no entries.
func typedEntries(record []entry) []metav1.ManagedFieldsEntry {
	if len(record) == 0 {
		return nil
	}
	out := make([]metav1.ManagedFieldsEntry, len(record))
	text := make([]byte, 0, 2048)
	for i := range record {
		e := &record[i]
		if !e.changed {
			out[i] = *e.typed
			continue
		}
		out[i] = metav1.ManagedFieldsEntry{
			Manager: e.manager, Operation: e.operation, APIVersion: e.version, Subresource: e.subresource,
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
		}
		if e.set != nil {
			text = e.set.AppendText(text[:0])
			out[i].FieldsV1.SetRawBytes(text) // which copies it
		} else {
			out[i].FieldsV1 = e.typed.FieldsV1
		}
		if !e.time.IsZero() {
			out[i].Time = &metav1.Time{Time: e.time}
		}
	}
	return out
}

// rawEntries returns managedFields for an object without a Go type; false if they have no
// canonical encoding.
func rawEntries(record []entry) (jsontext.Text, bool) {
	size := len("[]")
	for i := range record {
		size += 256 + len(record[i].raw)
	}
	out := append(make([]byte, 0, size), '[')
	for i := range record {
		if i > 0 {
			out = append(out, ',')
		}
		e := &record[i]
		if !e.changed {
			out = append(out, e.raw...)
			continue
		}
		out = jsontext.AppendText(append(out, `{"apiVersion":`...), e.version)
		out = append(out, `,"fieldsType":"FieldsV1","fieldsV1":`...)
		if e.set != nil {
			out = e.set.AppendText(out)
		} else {
			out = append(out, e.fields...)
		}
		out = jsontext.AppendText(append(out, `,"manager":`...), e.manager)
		out = jsontext.AppendText(append(out, `,"operation":`...), string(e.operation))
		if e.subresource != "" {
			out = jsontext.AppendText(append(out, `,"subresource":`...), e.subresource)
		}
		if !e.time.IsZero() {
			out = append(e.time.UTC().AppendFormat(append(out, `,"time":"`...), time.RFC3339), '"')
		}
		out = append(out, '}')
	}
	return jsontext.Canonicalize(append(out, ']'))
}

// setManagedFields sets the managedFields of an object; false if they cannot be encoded.
func (m *FieldManager) setManagedFields(obj Object, record []entry) bool {
	d, isDoc := obj.(*doc.Doc)
	switch {
	case !isDoc:
		obj.SetManagedFields(typedEntries(record))
		return true
	case len(record) == 0:
		doc.SetManagedFields(d, doc.Value{})
		return true
	}
	text, ok := rawEntries(record)
	if ok {
		doc.SetManagedFields(d, doc.OfText(text))
	}
	return ok
}
