// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
)

// attribution computes managedFields during an apply.
type attribution struct {
	root   *fields.Type
	record []entry
	sets   []*fields.Tree // of the entries before the apply
	own    entry          // of the manager that applies, as a new one
	at     int            // where it is in record; -1: nowhere
	set    *fields.Tree   // the fields of the configuration
}

// read parses the sets of all entries; false if one is not as the server writes it.
func (a *attribution) read() bool {
	a.sets = make([]*fields.Tree, len(a.record))
	for i := range a.record {
		e := &a.record[i]
		if e.manager == a.own.manager && e.operation == a.own.operation && e.subresource == a.own.subresource {
			a.at = i
		}
		var ok bool
		if a.sets[i], ok = e.read(); !ok || !a.sets[i].Fits(a.root) {
			return false
		}
	}
	return true
}

// drop returns the object without what its manager applied before and no manager owns now.
func (a *attribution) drop(after fields.Object) (fields.Object, bool) {
	if a.at < 0 || a.set.Contains(a.sets[a.at]) {
		return after, true
	}
	managed := fields.None()
	for i, set := range a.sets {
		if i == a.at {
			set = a.set
		}
		if !managed.Union(set) {
			return nil, false
		}
	}
	return fields.Drop(a.root, after, a.sets[a.at], managed)
}

// conflict is a field that another manager owns.
type conflict struct {
	with entry
	path string
}

// conflicts returns the fields of other managers that an apply adds or modifies.
func (a *attribution) conflicts(changes *fields.Tree) (out []conflict, ok bool) {
	for i, set := range a.sets {
		if i == a.at {
			continue
		}
		paths, ok := set.Conflicts(changes)
		if !ok {
			return nil, false
		}
		for _, path := range paths {
			out = append(out, conflict{a.record[i], path})
		}
	}
	return out, true
}

// finish sets the managedFields after an apply. changed is set if it changes the object; if not,
// the entry keeps its time.
func (a *attribution) finish(changes *fields.Tree, changed bool) bool {
	for i, set := range a.sets {
		if i == a.at {
			continue
		}
		less, ok := set.Subtract(changes)
		if !ok {
			return false
		}
		if less {
			a.record[i].set, a.record[i].changed = set, true
		}
	}
	a.set.Gains()
	if a.at < 0 {
		a.record, a.at = append(a.record, a.own), len(a.record)
		a.record[a.at].set, a.record[a.at].changed = a.set, true
	}
	e := &a.record[a.at]
	if e.set == nil && !(a.set.Contains(a.sets[a.at]) && a.sets[a.at].Contains(a.set)) {
		e.set, e.changed = a.set, true
	}
	if changed {
		e.time, e.changed = now(), true
	}
	a.record = slices.DeleteFunc(a.record, func(e entry) bool { return e.set != nil && e.set.Empty() })
	slices.SortStableFunc(a.record, entry.compare)
	return true
}

// conflictError is the answer to an apply with conflicts.
func conflictError(conflicts []conflict) error {
	slices.SortStableFunc(conflicts, func(a, b conflict) int { return strings.Compare(a.with.identity(), b.with.identity()) })
	causes := make([]metav1.StatusCause, len(conflicts))
	for i, c := range conflicts {
		causes[i] = metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: "conflict with " + c.with.shown(), Field: c.path}
	}
	if len(conflicts) == 1 {
		return apierrors.NewApplyConflict(causes, fmt.Sprintf("Apply failed with 1 conflict: %s: %s", causes[0].Message, causes[0].Field))
	}
	lines := make([]string, 0, 2*len(conflicts))
	for i, c := range conflicts {
		if i == 0 || c.with.identity() != conflicts[i-1].with.identity() {
			lines = append(lines, "conflicts with "+c.with.shown()+":")
		}
		lines = append(lines, "- "+c.path)
	}
	return apierrors.NewApplyConflict(causes, fmt.Sprintf("Apply failed with %d conflicts: %s", len(conflicts), strings.Join(lines, "\n")))
}

// identity is what distinguishes the entry of one manager from those of others, as
// kube-apiserver orders them.
func (e entry) identity() string {
	of := metav1.ManagedFieldsEntry{Manager: e.manager, Operation: e.operation, Subresource: e.subresource}
	if e.operation == metav1.ManagedFieldsOperationUpdate {
		of.APIVersion = e.version
	}
	text, _ := json.Marshal(of) // texts alone: it cannot fail
	return string(text)
}

// shown is how conflicts name the manager of an entry.
func (e entry) shown() string {
	out := fmt.Sprintf("%q", e.manager)
	if e.subresource != "" {
		out += fmt.Sprintf(" with subresource %q", e.subresource)
	}
	if e.operation == metav1.ManagedFieldsOperationUpdate {
		out += " using " + e.version
	}
	return out
}
