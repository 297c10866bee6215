// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/doc"
)

// Update attributes to manager the fields that differ between live and obj and returns
// obj with its managedFields set. For a creation live is an empty object. obj may be
// changed, live is not.
//
// It never fails because of the object: one that does not fit its schema, or that cannot be
// converted, is returned with the managedFields of live.
func (m *FieldManager) Update(ctx context.Context, live, obj Object, manager string) (Object, error) {
	if m.updateFast(live, obj, manager) {
		return obj, nil
	}
	library, err := m.bind(ctx)
	if err != nil {
		return nil, fmt.Errorf("track fields of %v: %w", m.binding.Kind, err)
	}
	if err := m.updateByLibrary(library, live, obj, manager); err != nil {
		obj.SetManagedFields(live.GetManagedFields())
	}
	return obj, nil
}

// updateByLibrary sets the managedFields of obj with the library.
func (m *FieldManager) updateByLibrary(library *managedfields.FieldManager, live, obj Object, manager string) error {
	// The library sets the apiVersion of the live object.
	return setManagedFieldsByLibrary(library, decoded(live.DeepCopyObject().(Object)), decoded(obj), obj, manager)
}

// setManagedFieldsByLibrary sets managedFields with the library from a pair of objects.
func setManagedFieldsByLibrary(library *managedfields.FieldManager, live, changed, obj Object, manager string) error {
	out, err := library.Update(live, changed, manager)
	if err != nil {
		return err
	}
	obj.SetManagedFields(out.(Object).GetManagedFields())
	return nil
}

// updateFast sets managedFields without the library, if the result of the library is
// certain: objects and managedFields are in the version of the endpoint, the
// managedFields were written by the server, and every value is of its type and has a
// unique label. Fields that a write adds or modifies move from all other managers to
// the writer, and removed ones from all.
//
//steer:fast comparison
func (m *FieldManager) updateFast(live, obj Object, manager string) bool {
	root, resets := m.root(), m.resets()
	if root == nil || resets == nil || !utf8.ValidString(manager) || !m.ofVersion(live) || !m.ofVersion(obj) {
		return false
	}
	if m.created(live, obj, manager) {
		return true
	}
	record, before, after, ok := m.pair(live, obj)
	if !ok {
		return false
	}
	changes, ok := fields.Compare(root, before, after)
	if !ok {
		return false
	}
	record, ok = m.attribute(changes, record, manager, live.GetUID() == "")
	return ok && m.setManagedFields(obj, record)
}

// pair returns the managedFields before an update, and both objects as text. It is false if the
// managedFields are not as the server wrote them, or changed by the client.
func (m *FieldManager) pair(live, obj Object) (record []entry, before, after fields.Object, ok bool) {
	old, isDoc := live.(*doc.Doc)
	wished, alsoDoc := obj.(*doc.Doc)
	switch {
	case isDoc != alsoDoc, isDoc == (m.binding.Endpoint.New != nil), reflect.TypeOf(live) != reflect.TypeOf(obj):
		return nil, nil, nil, false
	case isDoc:
		if record, ok = m.serverEntries(old, wished); ok {
			before, after, ok = docObjects(old, wished)
		}
		return record, before, after, ok
	}
	if record, ok = m.serverTypedEntries(live, obj); ok {
		before, ok = m.typedObject(live)
	}
	if ok {
		after, ok = m.typedObject(obj)
	}
	return record, before, after, ok
}

// ofVersion reports whether an object is in the version of the endpoint. A typed object
// without apiVersion is.
func (m *FieldManager) ofVersion(obj Object) bool {
	kind := obj.GetObjectKind().GroupVersionKind()
	return kind == m.binding.Kind || kind.Empty() && m.binding.Endpoint.New != nil
}

// attribute computes the managedFields after an update; false if they are not certain. creates
// reports that the object did not exist before.
func (m *FieldManager) attribute(changes *fields.Tree, record []entry, manager string, creates bool) ([]entry, bool) {
	if len(record) == 0 && !creates {
		return nil, true // managedFields were reset
	}
	changes.Prune(m.resets())
	root := m.root()
	own := m.ownOf(manager, metav1.ManagedFieldsOperationUpdate)
	at := -1
	for i := range record {
		e := &record[i]
		if e.manager == own.manager && e.operation == own.operation && e.subresource == own.subresource {
			at = i
		}
		before, ok := e.read()
		if !ok || !before.Fits(root) {
			return nil, false
		}
		changed, ok := before.Subtract(changes)
		if !ok {
			return nil, false
		}
		if changed {
			e.set, e.changed = before, true
		} else if at == i {
			e.set = before
		}
	}
	changes.Gains()
	if !changes.Empty() {
		if at < 0 {
			own.set = changes
			record, at = append(record, own), len(record)
		} else if !record[at].set.Union(changes) {
			return nil, false
		}
		record[at].changed, record[at].time = true, now()
	}
	record = slices.DeleteFunc(record, func(e entry) bool { return e.changed && e.set.Empty() })
	slices.SortStableFunc(record, entry.compare)
	return record, true
}

// ownOf returns a new entry of a manager.
func (m *FieldManager) ownOf(manager string, operation metav1.ManagedFieldsOperationType) entry {
	if manager == "" {
		manager = "unknown"
	}
	return entry{manager: manager, operation: operation, subresource: m.binding.Subresource, version: m.binding.Kind.GroupVersion().String()}
}

// now is the time of a write.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// created sets the managedFields of a typed object that is new, in one pass over it.
func (m *FieldManager) created(live, obj Object, manager string) bool {
	c := m.creation()
	if c == nil || obj.GetManagedFields() != nil || reflect.TypeOf(live) != reflect.TypeOf(obj) || !c.Fresh(live) {
		return false
	}
	set, ok := c.Of(obj)
	if !ok {
		return false
	}
	if set == nil {
		obj.SetManagedFields(nil)
		return true
	}
	own := m.ownOf(manager, metav1.ManagedFieldsOperationUpdate)
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: own.manager, Operation: own.operation, APIVersion: own.version, Subresource: own.subresource,
		Time: &metav1.Time{Time: now()}, FieldsType: "FieldsV1", FieldsV1: set,
	}})
	return true
}
