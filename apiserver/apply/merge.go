// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// Apply merges the applied configuration, an unstructured object, into live and returns
// the result with its managedFields set. live, which is not changed, is an empty object
// if the apply creates. The result may share memory with both.
//
// If the configuration changes neither object nor ownership the result equals live,
// times included. Fields that other managers own are a conflict, an error with status
// 409 and one cause per field, unless force is set; managedFields in the configuration,
// or another kind than that of the endpoint, are a 400.
func (m *Manager) Apply(ctx context.Context, live, applied Object, manager string, force bool) (Object, error) {
	library, err := m.bind(ctx)
	if err != nil {
		return nil, fmt.Errorf("apply %v: %w", m.binding.Kind, err)
	}
	if out, ok := m.applyLike(library, live, applied, manager, force); ok {
		return out, nil
	}
	out, err := library.Apply(decoded(live), decoded(applied), manager, force)
	if err != nil {
		return nil, err
	}
	return m.typed(out, applied)
}

// applyLike applies a configuration that only sets fields by repeating the outcome of
// an earlier apply of the same shape. It leaves everything else to the library, errors
// included.
//
//steer:fast outcomes
func (m *Manager) applyLike(library *managedfields.FieldManager, live, applied Object, manager string, force bool) (Object, bool) {
	old, isUnstructured := live.(*unstructured.Unstructured)
	configuration, alsoUnstructured := applied.(*unstructured.Unstructured)
	root := m.root()
	if !isUnstructured || !alsoUnstructured || root == nil || manager == "kubectl" || !m.convertsNothing(old) ||
		old.GroupVersionKind() != m.binding.Kind || configuration.GroupVersionKind() != m.binding.Kind {
		return nil, false
	}
	before, has, ok := rawManagedFields(old)
	if !has || !ok || before == "[]" {
		return nil, false
	}
	record, ok := m.entries(before)
	if !ok {
		return nil, false
	}
	if _, has, _ := rawManagedFields(configuration); has {
		return nil, false
	}
	merged, ok := fields.Merge(root, old.Object, configuration.Object)
	if !ok {
		return nil, false
	}
	shape := did(manager, force)
	was, is := wire.Differences(old.Object, merged)
	if !shape.AddValue(root, configuration.Object) || !shape.AddPair(root, was, is) {
		return nil, false
	}
	like := attempt{shape.Bytes(), record}
	known := m.outcomes.find(like.did, like.before)
	if known == nil {
		if known = m.learnApply(library, like, old, configuration, merged, manager, force); known == nil {
			return nil, false
		}
	}
	out := &unstructured.Unstructured{Object: merged}
	if metadata, ok := merged["metadata"].(map[string]any); ok {
		merged["metadata"] = maps.Clone(metadata)
	}
	return out, m.setManagedFields(out, known.record(record))
}

// learnApply lets the library apply a configuration and remembers the outcome if that
// is only the merged object with new managedFields.
func (m *Manager) learnApply(library *managedfields.FieldManager, like attempt, live, configuration *unstructured.Unstructured, merged map[string]any, manager string, force bool) *outcome {
	marked := decoded(live).(*unstructured.Unstructured).DeepCopy()
	entries := marked.GetManagedFields()
	if !readable(entries) {
		return nil
	}
	marked.SetManagedFields(marks(entries))
	out, err := library.Apply(marked, configuration.DeepCopy(), manager, force)
	if err != nil {
		return nil // the library returns the error again, with the right times
	}
	result, ok := out.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	after := result.GetManagedFields()
	if !m.keepsItsFields(entries, after, manager) {
		return nil
	}
	result.SetManagedFields(nil)
	plain := &unstructured.Unstructured{Object: maps.Clone(merged)}
	if metadata, ok := merged["metadata"].(map[string]any); ok {
		plain.Object["metadata"] = maps.Clone(metadata)
	}
	plain.SetManagedFields(nil)
	if !wire.Equal(result.Object, plain.Object) {
		return nil
	}
	return m.learn(like, after)
}

// keepsItsFields reports whether a manager applies all that it applied before. Fields
// that it no longer applies would have to be removed.
func (m *Manager) keepsItsFields(before, after []metav1.ManagedFieldsEntry, manager string) bool {
	had, err := m.appliedBy(before, manager)
	if err != nil {
		return false
	}
	has, err := m.appliedBy(after, manager)
	return err == nil && had.Difference(has).Empty()
}

// appliedBy returns the fields that a manager has applied.
func (m *Manager) appliedBy(entries []metav1.ManagedFieldsEntry, manager string) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	for i := range entries {
		e := &entries[i]
		if e.Operation != metav1.ManagedFieldsOperationApply || e.Manager != manager || e.Subresource != m.binding.Subresource || e.FieldsV1 == nil {
			continue
		}
		if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			return nil, err
		}
	}
	return set, nil
}
