// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// Memory is what is remembered, for one owner, between attempts: how its children
// deviated from their bodies after they were applied, so that a webhook which decides
// otherwise each time does not make every reconcile apply again; which inventories
// are complete; and which children of an owner that is being deleted are gone. The
// zero value is empty; it is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	byRef    map[Ref]answer
	complete []inventoryText
	appeared uint64 // how often a child has appeared
	gone     map[Ref]types.UID
}

// inventoryText is the annotation of a set, by its hash.
type inventoryText struct {
	set  string
	hash uint64
}

// answer is what the server made of a child.
type answer struct {
	uid  types.UID
	mark mark
}

// appearedOne notes a child that the cache has not shown before: it may be one that a
// former process has created and that is in no inventory.
func (a *Memory) appearedOne() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complete = nil
	a.appeared++
}

// isComplete reports whether an inventory is known to list all children of its set,
// and returns what completed needs to know.
func (a *Memory) isComplete(t inventoryText) (now uint64, complete bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.appeared, slices.Contains(a.complete, t)
}

// incomplete forgets that the inventory of a set was complete.
func (a *Memory) incomplete(set string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complete = slices.DeleteFunc(a.complete, func(t inventoryText) bool { return t.set == set })
}

// completed notes the inventory of a set that lists all of its children, unless one
// has appeared since.
func (a *Memory) completed(t inventoryText, since uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if since != a.appeared {
		return
	}
	if i := slices.IndexFunc(a.complete, func(other inventoryText) bool { return other.set == t.set }); i >= 0 {
		a.complete[i] = t
		return
	}
	a.complete = append(a.complete, t)
}

func (a *Memory) knows(ref Ref, known answer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, ok := a.byRef[ref]
	return ok && was == known
}

func (a *Memory) learn(ref Ref, known answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byRef == nil {
		a.byRef = map[Ref]answer{}
	}
	a.byRef[ref] = known
}

func (a *Memory) forget(ref Ref) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byRef, ref)
}

// went notes that a child of an owner is gone for good; isGone tells.
func (a *Memory) went(ref Ref, owner types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone == nil {
		a.gone = map[Ref]types.UID{}
	}
	a.gone[ref] = owner
}

func (a *Memory) isGone(ref Ref, owner types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return owner != "" && a.gone[ref] == owner
}

// comes takes a child back that is about to be created.
func (a *Memory) comes(ref Ref) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.gone, ref)
}

// Memories are the memories of all owners of a controller. The zero value is empty; it
// is safe for concurrent use.
type Memories struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*Memory
}

// Of returns the memory of an owner.
func (m *Memories) Of(owner types.NamespacedName) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = map[types.NamespacedName]*Memory{}
	}
	if m.byKey[owner] == nil {
		m.byKey[owner] = &Memory{}
	}
	return m.byKey[owner]
}

// Appeared is told of a child that the cache has not shown before: what the memory of
// its owner calls complete may not be.
func (m *Memories) Appeared(owner types.NamespacedName) {
	m.mu.Lock()
	known := m.byKey[owner]
	m.mu.Unlock()
	if known != nil {
		known.appearedOne()
	}
}

// Forget forgets an owner.
func (m *Memories) Forget(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, owner)
}

// ControllerOf is the UID of the controlling owner, empty for none.
func ControllerOf(obj client.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return ref.UID
	}
	return ""
}
