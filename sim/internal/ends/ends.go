// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ends compares what two runs of one operator leave behind.
//
// Runs that are equally legal differ in what servers and clocks give: uids, generated
// names, hashes in names, resourceVersions, addresses, times. A [State] knows these values
// and where they are repeated, also within annotations, other names and owner references.
// [Compare] pairs the objects of two states and compares what each value stands for: a
// reference to the uid of a Pod is the same if the Pods that both mean are paired.
//
// What is left out: managedFields, metadata.generation (an observedGeneration is compared
// by how far it is behind), node ports, ids of containers, the templates that a workload had
// before and their number, and the kinds Event and Lease. A time is a time: which one is not
// compared, and a number that is one of a bubble's clock counts as one. A UUID that is no
// object's is renamed within its object.
//
// [Destroyed], [Orphans] and [Leftovers] read what happened to objects on the way. The
// package is pure.
package ends

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Life is one incarnation of an object, from its creation to its deletion or to the end
// of the run.
type Life struct {
	// Object as it is at the end, or was when it was deleted. It is not changed.
	Object *unstructured.Unstructured
	// Created and Deleted are the revisions of creation and deletion; Deleted is 0 at the
	// end of a run for what is there.
	Created, Deleted int64
	// CreatedBy and DeletedBy are the actors that did it.
	CreatedBy, DeletedBy string
}

// State is what a run has left, and what it has deleted. It is immutable.
type State struct {
	live  []*node // by class and name
	gone  []*node // in the order given
	byUID map[string]*node
}

// node is one incarnation in a State.
type node struct {
	Life
	kind      string // "Deployment.apps"
	namespace text
	name      text // with a reference to the node itself, if the name was generated
	prefix    string
	pattern   string // the name with "~" for what was generated
	class     string // kind, namespace and pattern: nodes that may stand for one another share it
	tree      value
	edges     []edge
}

// New reads the lives of one run, in any order.
func New(lives []Life) *State {
	s := &State{byUID: map[string]*node{}}
	past := history(lives)
	for _, life := range lives {
		gvk := life.Object.GroupVersionKind()
		if past[life.Object] || gvk.Kind == "Event" || gvk.Kind == "Lease" && gvk.Group == "coordination.k8s.io" {
			continue
		}
		n := &node{Life: life, kind: gvk.Kind}
		if gvk.Group != "" {
			n.kind += "." + gvk.Group
		}
		if life.Deleted != 0 {
			s.gone = append(s.gone, n)
		} else {
			s.live = append(s.live, n)
		}
		if uid := string(life.Object.GetUID()); uid != "" {
			s.byUID[uid] = n
		}
	}
	byKey := func(a, b *node) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()),
			strings.Compare(a.Object.GetName(), b.Object.GetName()), cmp.Compare(a.Created, b.Created))
	}
	slices.SortFunc(s.live, byKey)
	slices.SortFunc(s.gone, byKey)
	names := newScanner(s)
	for n := range s.all {
		n.namespace = names.text(n.Object.GetNamespace())
		if n.prefix != "" {
			n.name = append(slices.Clone(names.text(n.prefix)), part{ref: n, as: ownName})
		} else {
			n.name = names.text(n.Object.GetName())
		}
	}
	for n := range s.all {
		n.pattern = n.name.render(patterns)
		n.class = n.kind + " " + slashed(n.namespace.render(patterns), n.pattern)
	}
	for _, n := range s.live {
		n.parse(names)
	}
	return s
}

// all yields the live nodes, then the others.
func (s *State) all(yield func(*node) bool) {
	for _, list := range [][]*node{s.live, s.gone} {
		for _, n := range list {
			if !yield(n) {
				return
			}
		}
	}
}

func (n *node) secret() bool { return n.kind == "Secret" }

// owner returns the node of a reference, the one that controls n first; nil without any.
func (s *State) owner(n *node) *node {
	var first *node
	for _, ref := range n.Object.GetOwnerReferences() {
		owner := s.byUID[string(ref.UID)]
		if owner != nil && ref.Controller != nil && *ref.Controller {
			return owner
		}
		if first == nil {
			first = owner
		}
	}
	return first
}

// generatedPrefix returns the part of a name that was not generated, empty if the name was
// chosen: generateName, or the name of the owner before a hash or a time, as Deployments
// and CronJobs do it.
func (s *State) generatedPrefix(n *node) string {
	name := n.Object.GetName()
	if prefix := n.Object.GetGenerateName(); prefix != "" && len(name) > len(prefix) && strings.HasPrefix(name, prefix) {
		return prefix
	}
	owner := s.owner(n)
	if owner == nil {
		return ""
	}
	prefix := owner.Object.GetName() + "-"
	if suffix, ok := strings.CutPrefix(name, prefix); ok && (hash(suffix) || minutes(suffix)) {
		return prefix
	}
	return ""
}

// hash reports whether s may be a hash as Kubernetes writes it: without vowels and the
// digits that look like some.
func hash(s string) bool {
	return len(s) >= 5 && len(s) <= 10 && strings.Trim(s, "bcdfghjklmnpqrstvwxz2456789") == ""
}

// minutes reports whether s may be the time in the name of a CronJob's Job.
func minutes(s string) bool {
	return len(s) >= 8 && len(s) <= 12 && strings.Trim(s, "0123456789") == ""
}

func slashed(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
