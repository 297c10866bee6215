// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// count is what became of the objects of one class.
type count struct {
	created, deleted int // by any actor; by the actor that is asked about
	kept             bool
}

func (s *State) counts(actor string) map[string]count {
	out := map[string]count{}
	for n := range s.all {
		c := out[n.class]
		c.created++
		c.kept = c.kept || n.Deleted == 0
		if n.Deleted != 0 && n.DeletedBy == actor {
			c.deleted++
		}
		out[n.class] = c
	}
	return out
}

// Destroyed returns the objects, as "Kind namespace/name", that the actor deleted in the
// run and that the reference keeps, or never has this actor delete: also if they were made
// anew later. Objects that only the run has do not count.
func Destroyed(reference, run *State, actor string) []string {
	kept, counts := reference.counts(actor), run.counts(actor)
	var out []string
	for _, class := range sortedKeys(counts) {
		c, want := counts[class], kept[class]
		if c.deleted > want.deleted && want.created > 0 && (want.kept || want.deleted == 0) {
			out = append(out, class)
		}
	}
	return out
}

// Orphans returns the objects that an actor created for owners that it had let go of, each
// with its owner: their last finalizer was its own. For an owner that another deleted it may
// create one more, as long as it does not know: the garbage collector deletes it.
func Orphans(run *State) []string {
	var out []string
	for n := range run.all {
		for _, ref := range n.Object.GetOwnerReferences() {
			owner := run.byUID[string(ref.UID)]
			if owner == nil || owner.Deleted == 0 || n.Created == 0 || owner.Deleted > n.Created || owner.DeletedBy != n.CreatedBy {
				continue
			}
			text := fmt.Sprintf("%s, created for %s, which was deleted before", n.class, owner.class)
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// Leftovers returns the objects that the actor created and that are still there although
// nothing is left of what it looks after. What it looks after is what others created and
// what is named as an owner by what it created, or has a status that was written. What the
// actor created before the first of them is its own.
func Leftovers(run *State, actor string) []string {
	owners := map[string]bool{}
	for n := range run.all {
		for _, ref := range n.Object.GetOwnerReferences() {
			owners[string(ref.UID)] = owners[string(ref.UID)] || n.CreatedBy == actor
		}
	}
	var first *node
	for n := range run.all {
		switch {
		case n.CreatedBy == actor || n.CreatedBy == "" || !owners[string(n.Object.GetUID())] && !n.reported():
		case n.Deleted == 0:
			return nil
		case first == nil || n.Created < first.Created:
			first = n
		}
	}
	if first == nil {
		return nil
	}
	var out []string
	for _, n := range run.live {
		if n.CreatedBy == actor && n.Created > first.Created {
			out = append(out, n.class)
		}
	}
	return out
}

// reported reports whether the status of an object was written.
func (n *node) reported() bool {
	return slices.ContainsFunc(n.Object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource == "status" })
}
