// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/doc"
)

// Apply merges the applied configuration, a resource.Doc, into live and returns
// the result with its managedFields set. live, which is not changed, is an empty object
// if the apply creates. The result may share memory with both.
//
// If the configuration changes neither object nor ownership the result equals live,
// times included. Fields that other managers own are a conflict, an error with status
// 409 and one cause per field, unless force is set; managedFields in the configuration,
// or another kind than that of the endpoint, are a 400.
func (m *FieldManager) Apply(ctx context.Context, live Object, applied *doc.Doc, manager string, force bool) (Object, error) {
	if out, certain, err := m.applyFast(live, applied, manager, force); certain {
		return out, err
	}
	library, err := m.bind(ctx)
	if err != nil {
		return nil, fmt.Errorf("apply %v: %w", m.binding.Kind, err)
	}
	out, err := library.Apply(decoded(live), decoded(applied), manager, force)
	if err != nil {
		return nil, err
	}
	return m.typed(out, applied)
}

// kubectl keeps in an annotation what this manager applies, too.
const (
	lastAppliedManager    = "kubectl"
	lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
)

// applyFast applies a configuration without the library, if the result of the library is
// certain: object, configuration and managedFields are in the version of the endpoint, and what
// they have in common is of its type and has unique labels.
//
// The manager owns what the configuration sets. What it no longer sets goes, unless others own
// it. Fields that the apply adds or modifies are conflicts with the other managers that own
// them, or move to this one.
//
//steer:fast comparison
func (m *FieldManager) applyFast(live Object, applied *doc.Doc, manager string, force bool) (out Object, certain bool, err error) {
	root, resets := m.root(), m.resets()
	if root == nil || resets == nil || !utf8.ValidString(manager) || !m.ofVersion(live) || applied.GroupVersionKind() != m.binding.Kind {
		return nil, false, nil
	}
	before, record, ok := m.current(live)
	if !ok {
		return nil, false, nil
	}
	if _, has := doc.Metadata(applied); !has || doc.ManagedFields(applied).Exists() {
		return nil, false, nil // an error, which the library returns
	}
	wished, ok := docObject(applied, true)
	if !ok {
		return nil, false, nil
	}
	set, ok := fields.SetOf(root, wished)
	if !ok {
		return nil, false, nil
	}
	set.Prune(resets)
	after, ok := fields.Merge(root, before, wished)
	if !ok {
		return nil, false, nil
	}
	a := attribution{root: root, record: record, own: m.ownOf(manager, metav1.ManagedFieldsOperationApply), set: set, at: -1}
	if !a.read() {
		return nil, false, nil
	}
	if after, ok = a.drop(after); !ok {
		return nil, false, nil
	}
	changes, ok := fields.Compare(root, before, after)
	if !ok {
		return nil, false, nil
	}
	changes.Prune(resets)
	if !force {
		conflicts, ok := a.conflicts(changes)
		if !ok || len(conflicts) > 0 && manager == lastAppliedManager {
			return nil, false, nil
		}
		if len(conflicts) > 0 {
			return nil, true, conflictError(conflicts)
		}
	}
	same := slices.Equal(before, after)
	if !a.finish(changes, !same) {
		return nil, false, nil
	}
	if manager == lastAppliedManager && strings.Contains(string(after.Get("metadata")), `"`+lastAppliedAnnotation+`":`) {
		return nil, false, nil // it is written anew
	}
	if out, ok = m.built(live, before, after, same); !ok {
		return nil, false, nil
	}
	return out, m.setManagedFields(out, a.record), nil
}
