// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Update attributes to manager what differs between live and obj and returns obj
// with its record set. For a creation live is an empty object. obj may be
// changed, live is not.
//
// It never fails because of the object: one that does not fit its schema is
// returned without a record, for validation to refuse.
func (m *Manager) Update(live, obj Object, manager string) (Object, error) {
	fields, err := m.fields()
	if err != nil {
		return nil, fmt.Errorf("track fields of %v: %w", m.binding.Kind, err)
	}
	if err := m.update(fields, live, obj, manager); err != nil {
		obj.SetManagedFields(nil)
	}
	return obj, nil
}

// update gives obj its record, unless it fails.
func (m *Manager) update(fields *managedfields.FieldManager, live, obj Object, manager string) error {
	if m.binding.Endpoint.Convert != nil && !(m.inOneVersion(live) && m.inOneVersion(obj)) {
		// Differences would have to be converted, which takes whole objects.
		return recordByLibrary(fields, live, obj, obj, manager)
	}
	before, after, err := m.binding.differences(live, obj)
	if err != nil {
		return err
	}
	like, ok := m.updateLike(live, obj, before, after, manager)
	if !ok {
		return recordByLibrary(fields, m.binding.wrap(before, live), m.binding.wrap(after, obj), obj, manager)
	}
	known := m.outcomes.find(like.did, like.before)
	if known == nil {
		old, wished := m.binding.wrap(before, live), m.binding.wrap(after, obj)
		used := wished.ManagedFields
		if len(used) == 0 || m.binding.Subresource != "" {
			used = old.ManagedFields
		}
		if !readable(used) {
			return recordByLibrary(fields, old, wished, obj, manager)
		}
		old.ManagedFields, wished.ManagedFields = marks(old.ManagedFields), marks(wished.ManagedFields)
		out, err := fields.Update(old, wished, manager)
		if err != nil {
			return err
		}
		if known, err = m.learn(like, out.(Object).GetManagedFields()); err != nil {
			return err
		}
	}
	return setRecord(obj, known.record(like.before, time.Now()))
}

// recordByLibrary gives obj the record that the library makes of a pair of objects, or of
// differences between them.
func recordByLibrary(fields *managedfields.FieldManager, live, changed, obj Object, manager string) error {
	out, err := fields.Update(live, changed, manager)
	if err != nil {
		return err
	}
	obj.SetManagedFields(out.(Object).GetManagedFields())
	return nil
}

// attempt is a write whose outcome is remembered: what it does, and the record
// that it finds.
type attempt struct {
	did    []byte
	before []any
}

// learn remembers the record that an attempt has made of a marked one.
func (m *Manager) learn(a attempt, after []metav1.ManagedFieldsEntry) (*outcome, error) {
	known, err := learn(a.before, after, m.binding.Endpoint.New != nil)
	if err == nil {
		m.outcomes.add(a.did, known)
	}
	return known, err
}

// did begins the description of a write.
func did(verb, manager string, more bool) shape {
	s := shape{bytes: make([]byte, 0, 256)}
	s.bytes = append(s.bytes, verb...)
	s.equality(more)
	s.bytes = append(s.bytes, manager...)
	s.bytes = append(s.bytes, 0)
	return s
}

// updateLike describes an update for [outcomes]; false when it is not like any
// other.
func (m *Manager) updateLike(live, obj Object, before, after map[string]any, manager string) (attempt, bool) {
	root := m.root()
	record, plain := m.binding.recordFor(live, obj)
	if !plain || root == nil {
		return attempt{}, false
	}
	s := did("update", manager, live.GetUID() == "")
	if !s.add(root, both, before, after) {
		return attempt{}, false
	}
	return attempt{s.bytes, record}, true
}

// recordFor returns the record that an update goes on from: the one that the
// client sent, if it did, otherwise that of the live object.
func (b *binding) recordFor(live, obj Object) (record []any, plain bool) {
	if b.Subresource == "" {
		record, has, ok := recordOf(obj)
		if has || !ok {
			return record, ok && len(record) > 0 && b.plainRecord(record)
		}
	}
	record, _, ok := recordOf(live)
	return record, ok && b.plainRecord(record)
}
