// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// entry is one entry of a record on its way through a write.
type entry struct {
	manager, version, subresource string
	operation                     metav1.ManagedFieldsOperationType
	time                          time.Time // in whole seconds; zero: none
	// The entry before the write; neither for a new one.
	typed *metav1.ManagedFieldsEntry
	raw   map[string]any
	// set is what it has after the write if that has changed.
	set     *fields.Tree
	changed bool
}

// compare orders entries as a record has them.
func (e entry) compare(other entry) int {
	return cmp.Or(
		strings.Compare(string(e.operation), string(other.operation)), e.time.Compare(other.time), strings.Compare(e.manager, other.manager),
		strings.Compare(e.version, other.version), strings.Compare(e.subresource, other.subresource),
	)
}

// read returns the fields of an entry.
func (e *entry) read() (*fields.Tree, bool) {
	if e.typed != nil {
		return fields.ReadText(e.typed.FieldsV1.GetRawString())
	}
	set, ok := e.raw["fieldsV1"].(map[string]any)
	if !ok {
		return nil, false
	}
	return fields.ReadFields(set)
}

// ownTypedRecord returns the record of a typed object before a write, if it is as
// the server has written it: short, in the version of the endpoint, and not
// changed by the client.
func (m *Manager) ownTypedRecord(live, obj Object) ([]entry, bool) {
	before := live.GetManagedFields()
	if m.binding.Subresource == "" {
		if sent := obj.GetManagedFields(); sent != nil && !sameRecord(before, sent) {
			return nil, false
		}
	}
	if len(before) > maxRemembered {
		return nil, false
	}
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

// repeats tells whether others are by the same manager in the same way.
func (e *entry) repeats(others []entry) bool {
	for i := range others {
		if o := &others[i]; o.manager == e.manager && o.operation == e.operation && o.subresource == e.subresource {
			return true
		}
	}
	return e.operation != metav1.ManagedFieldsOperationUpdate && e.operation != metav1.ManagedFieldsOperationApply
}

// sameRecord compares the records of typed objects.
func sameRecord(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) || len(b) == 0 { // one that is there and empty asks for something
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

// ownRecord is ownTypedRecord for unstructured objects.
func (m *Manager) ownRecord(live, obj *unstructured.Unstructured) ([]entry, bool) {
	before, _, ok := rawRecord(live)
	if !ok {
		return nil, false
	}
	if m.binding.Subresource == "" {
		sent, has, ok := rawRecord(obj)
		if !ok || has && (len(sent) == 0 || !wire.Equal(sent, before)) {
			return nil, false
		}
	}
	if !m.binding.plainRecord(before) {
		return nil, false
	}
	version := m.binding.Kind.GroupVersion().String()
	out := make([]entry, len(before), len(before)+1)
	for i := range before {
		raw := before[i].(map[string]any)
		text := func(name string) string {
			value, _ := raw[name].(string)
			return value
		}
		out[i] = entry{
			manager: text("manager"), version: version, subresource: text("subresource"),
			operation: metav1.ManagedFieldsOperationType(text("operation")), raw: raw,
		}
		if at := text("time"); at != "" {
			var err error
			if out[i].time, err = time.Parse(time.RFC3339, at); err != nil {
				return nil, false
			}
		}
		if out[i].repeats(out[:i]) {
			return nil, false
		}
	}
	return out, true
}

// typedEntries writes a record for a typed object; nil if it is empty.
func typedEntries(record []entry) []metav1.ManagedFieldsEntry {
	if len(record) == 0 {
		return nil
	}
	out := make([]metav1.ManagedFieldsEntry, len(record))
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
		out[i].FieldsV1.SetRawString(e.set.Text())
		if !e.time.IsZero() {
			out[i].Time = &metav1.Time{Time: e.time}
		}
	}
	return out
}

// rawEntries writes a record for an unstructured object.
func rawEntries(record []entry) []any {
	out := make([]any, len(record))
	for i := range record {
		e := &record[i]
		if !e.changed {
			out[i] = e.raw
			continue
		}
		before, _ := e.raw["fieldsV1"].(map[string]any)
		raw := map[string]any{
			"manager": e.manager, "operation": string(e.operation), "apiVersion": e.version, "fieldsType": "FieldsV1", "fieldsV1": e.set.Fields(before),
		}
		if e.subresource != "" {
			raw["subresource"] = e.subresource
		}
		if !e.time.IsZero() {
			raw["time"] = e.time.UTC().Format(time.RFC3339)
		}
		out[i] = raw
	}
	return out
}
