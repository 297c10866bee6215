// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the indexed local copy of one kind, and an overlay of own
// writes on top of it.
//
// There are two layers. The committed layer is what the watch has delivered; it
// changes only through Commit, in the order of the watch, and is what handlers
// see. The overlay holds results of own writes that the watch has not reached;
// reads merge it.
//
// Objects in a store are never changed: a new version replaces the pointer.
package store

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// Op is what a Delta does.
type Op uint8

const (
	// Put is a new or changed object.
	Put Op = iota + 1
	// PutListed is an object of a list under way.
	PutListed
	// Delete is an object that is gone; Object is its last state.
	Delete
	// Progress says that everything up to Revision has been delivered.
	Progress
	// ListBegin starts a list: what is not put before ListEnd is gone.
	ListBegin
	// ListEnd ends a list that shows the state of Revision.
	ListEnd
	// KindGone says that the kind itself, with all its objects, is gone.
	KindGone
	// Covered says that this watch does not take place: the kind has no
	// namespaces, and the first watch delivers all of it.
	Covered
)

// Delta is one step of a watch.
type Delta struct {
	Op     Op
	Scope  int // which of the store's watches
	Object client.Object
	// Revision is the delta's resourceVersion; for objects their own.
	Revision string
	// Mark, of ListBegin, is what Store.Mark gave before the list was asked for.
	Mark uint64
}

// Change is what a Delta did to an object.
type Change struct {
	Old, New client.Object // nil when it did not or does not exist
	Inferred bool          // the deletion was concluded, not seen
}

// entry is one object's place; its address stays while the object lives, so
// that index postings hold through updates.
type entry struct {
	key    client.ObjectKey
	obj    client.Object
	rev    uint64 // 0 when it cannot be compared
	uid    types.UID
	values [][]string // by index slot
	list   uint64     // the list that last showed it
}

// scope is the state of one watch.
type scope struct {
	namespace string
	first     bool
	covered   bool   // does not count
	progress  uint64 // everything up to it is committed; 0 when unknown
	revision  string // the same, in the server's words
	list      uint64 // number of the list under way or the last one
	mark      uint64 // Mark of that list
}

// Store is safe for concurrent use.
type Store struct {
	writer sync.Mutex // held while the committed layer or the indexes are changed

	mu      sync.RWMutex
	entries map[client.ObjectKey]*entry
	indexes []*index // by slot
	named   map[string]*index
	scopes  []scope
	lists   uint64
	own     overlay
	deleted uidRing
}

// New makes a store fed by one watch per namespace; "" is all of them.
func New(namespaces ...string) *Store {
	s := &Store{entries: map[client.ObjectKey]*entry{}, named: map[string]*index{}}
	for _, ns := range namespaces {
		s.scopes = append(s.scopes, scope{namespace: ns, first: len(s.scopes) == 0})
	}
	s.own.entries = map[client.ObjectKey]*ownEntry{}
	s.addIndex(NamespaceIndex, func(obj client.Object) []string { return []string{obj.GetNamespace()} })
	s.addIndex(OwnerIndex, ownerValues)
	return s
}

// ParseRevision is rv as a number, or 0 when it cannot be compared.
func ParseRevision(rv string) uint64 {
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// covers says that the watch delivers the objects of namespace; those of a
// cluster-scoped kind come through the first one.
func (sc *scope) covers(namespace string) bool {
	return sc.namespace == "" || sc.namespace == namespace || sc.first && namespace == ""
}

// scopeOf is the watch that delivers namespace. A cluster-scoped kind has one.
func (s *Store) scopeOf(namespace string) *scope {
	for i := range s.scopes {
		if s.scopes[i].namespace == namespace {
			return &s.scopes[i]
		}
	}
	return &s.scopes[0]
}

// Revision is the newest revision that all watches have reached, and as a
// number.
func (s *Store) Revision() (string, uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at := &s.scopes[0]
	for i := range s.scopes {
		if sc := &s.scopes[i]; !sc.covered && sc.progress < at.progress {
			at = sc
		}
	}
	return at.revision, at.progress
}

// RevisionOf is the revision that the watch of namespace has reached.
func (s *Store) RevisionOf(namespace string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.scopeOf(namespace).revision
}

// Reached says that the watch of namespace has delivered rev. An empty
// namespace means all watches.
func (s *Store) Reached(namespace, rv string) bool {
	rev := ParseRevision(rv)
	if rev == 0 {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if namespace != "" {
		return s.scopeOf(namespace).progress >= rev
	}
	for i := range s.scopes {
		if !s.scopes[i].covered && s.scopes[i].progress < rev {
			return false
		}
	}
	return true
}

// Len is the number of committed objects, and of overlay entries.
func (s *Store) Len() (objects, own int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.entries), len(s.own.entries)
}

// Commit applies deltas in order and appends what changed to changes.
func (s *Store) Commit(deltas []Delta, changes []Change) []Change {
	s.writer.Lock()
	defer s.writer.Unlock()
	// Index functions are foreign code: they run before readers are locked out.
	prepared := make([][][]string, len(deltas))
	for i := range deltas {
		if d := &deltas[i]; d.Op == Put || d.Op == PutListed {
			prepared[i] = s.evaluate(d.Object)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range deltas {
		changes = s.apply(&deltas[i], prepared[i], changes)
	}
	return changes
}

func (s *Store) apply(d *Delta, values [][]string, changes []Change) []Change {
	sc := &s.scopes[d.Scope]
	switch d.Op {
	case Put:
		changes = s.put(d, values, 0, changes)
		s.advance(sc, d.Revision)
	case PutListed:
		changes = s.put(d, values, sc.list, changes)
	case Delete:
		changes = s.remove(d, changes)
		s.advance(sc, d.Revision)
	case Progress:
		s.advance(sc, d.Revision)
	case ListBegin:
		s.lists++
		sc.list, sc.mark = s.lists, d.Mark
	case ListEnd:
		changes = s.sweep(sc, sc.list, ParseRevision(d.Revision), changes)
		s.own.listed(sc, sc.mark)
		sc.progress, sc.revision = 0, ""
		s.advance(sc, d.Revision)
	case KindGone:
		s.lists++
		changes = s.sweep(sc, s.lists, 0, changes)
		s.own.listed(sc, ^uint64(0))
	case Covered:
		sc.covered = true
	}
	return changes
}

// advance notes that everything up to rv has been delivered.
func (s *Store) advance(sc *scope, rv string) {
	if rv == "" {
		return
	}
	sc.revision = rv
	if rev := ParseRevision(rv); rev > sc.progress {
		sc.progress = rev
		s.own.reached(sc, rev)
	}
}

func (s *Store) put(d *Delta, values [][]string, list uint64, changes []Change) []Change {
	obj := d.Object
	key := client.ObjectKeyFromObject(obj)
	rev, uid := ParseRevision(obj.GetResourceVersion()), obj.GetUID()
	e, known := s.entries[key]
	if known {
		if list != 0 {
			e.list = list
		}
		if e.uid == uid && (e.obj.GetResourceVersion() == obj.GetResourceVersion() || rev != 0 && rev < e.rev) {
			s.own.seen(key, uid, e.rev, d.Revision)
			return changes // nothing new
		}
		if e.uid != uid {
			if rev != 0 && rev < e.rev {
				return changes // an older incarnation
			}
			changes = append(changes, Change{Old: e.obj, Inferred: true})
			s.unlink(e)
			s.concluded(e, rev)
			known = false
		}
	}
	if known {
		changes = append(changes, Change{Old: e.obj, New: obj})
		e.obj, e.rev = obj, rev
		s.reindex(e, values)
	} else {
		e = &entry{key: key, obj: obj, rev: rev, uid: uid, list: list}
		s.entries[key] = e
		s.reindex(e, values)
		changes = append(changes, Change{New: obj})
	}
	s.own.seen(key, uid, rev, d.Revision)
	return changes
}

func (s *Store) remove(d *Delta, changes []Change) []Change {
	key, uid, rev := client.ObjectKeyFromObject(d.Object), d.Object.GetUID(), ParseRevision(d.Revision)
	s.own.gone(key, uid, rev)
	s.deleted.add(uid, rev)
	e, ok := s.entries[key]
	if !ok || e.uid != uid && e.rev > rev {
		return changes
	}
	s.unlink(e)
	last := d.Object
	if e.uid != uid {
		last = e.obj
	}
	return append(changes, Change{Old: last})
}

// sweep removes what the list, of revision rev, did not show, in order of key.
func (s *Store) sweep(sc *scope, list, rev uint64, changes []Change) []Change {
	var gone []*entry
	for key, e := range s.entries {
		if e.list != list && sc.covers(key.Namespace) {
			gone = append(gone, e)
		}
	}
	slices.SortFunc(gone, byKey)
	for _, e := range gone {
		s.unlink(e)
		s.concluded(e, rev)
		changes = append(changes, Change{Old: e.obj, Inferred: true})
	}
	return changes
}

// concluded notes a deletion that was not seen, before rev.
func (s *Store) concluded(e *entry, rev uint64) {
	s.own.gone(e.key, e.uid, rev)
	s.deleted.add(e.uid, rev)
}

func byKey(a, b *entry) int { return compareKeys(a.key, b.key) }

func compareKeys(a, b client.ObjectKey) int {
	if c := cmp.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

// uidRing remembers the uids noted last, with a revision: those deleted, to
// recognise own deletions that the watch has delivered before their answer
// arrived, and those of own deletions. Its zero value is empty.
type uidRing struct {
	ring []types.UID
	next int
	revs map[types.UID]uint64
}

// uidRingLength is far more than there are answers under way at a time.
const uidRingLength = 512

// add notes uid at rev; 0 means later than all.
func (r *uidRing) add(uid types.UID, rev uint64) {
	if uid == "" {
		return
	}
	if r.revs == nil {
		r.revs = map[types.UID]uint64{}
	}
	_, again := r.revs[uid]
	r.revs[uid] = rev
	switch {
	case again:
	case len(r.ring) < uidRingLength:
		r.ring = append(r.ring, uid)
	default:
		delete(r.revs, r.ring[r.next])
		r.ring[r.next] = uid
		r.next = (r.next + 1) % len(r.ring)
	}
}

// since says that uid has been noted at a revision later than rev.
func (r *uidRing) since(uid types.UID, rev uint64) bool {
	at, ok := r.revs[uid]
	return ok && (at == 0 || at > rev)
}
