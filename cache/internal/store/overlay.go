// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// Own is the result of an own write.
type Own struct {
	Key client.ObjectKey
	UID types.UID
	// Revision is that of the write; empty when the server did not say.
	Revision string
	// Floor is a revision of the same incarnation (UID), so that earlier
	// incarnations are known to be older than it.
	Floor string
	// Object is the new state, as it will be stored; nil means deleted (or out
	// of what the store selects).
	Object client.Object
	// Unknown says that the new state is not known here: reads of it go to the
	// server until the watch has delivered it.
	Unknown bool
	// Lost says that the answer got lost: the write may not have happened.
	Lost bool
}

// ownEntry is an own write that the watch has not delivered.
type ownEntry struct {
	uid      types.UID
	rev      uint64 // 0 when unknown
	revision string
	floor    uint64
	obj      client.Object
	unknown  bool
	lost     bool
	values   [][]string
	mark     uint64
}

// deletes says that the entry is a deletion of its uid, at a revision that the
// server did not say.
func (own *ownEntry) deletes() bool {
	return own.rev == 0 && own.obj == nil && !own.unknown && own.uid != ""
}

// overlay is the own writes on top of the committed layer; the store's mu
// guards it.
//
// An entry goes when the watch has reached its revision: by a version of the
// object that is as new, or by progress of the whole watch. A deletion without
// a revision goes when the deletion of its uid, or a later incarnation, is
// delivered; an unknown state without a revision when a live read has given it
// one. What cannot be put in order - a deletion with an incarnation delivered,
// or with another own write - becomes an unknown state. A list that was asked
// for after the write covers it in any case.
type overlay struct {
	entries map[client.ObjectKey]*ownEntry
	marks   uint64
	dead    uidRing // own deletions
}

// Mark numbers a moment: own writes before it are covered by a consistent list
// asked for after it.
func (s *Store) Mark() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own.marks++
	return s.own.marks
}

// Write notes an own write. Answers may arrive in another order than that of
// the writes.
func (s *Store) Write(w Own) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &ownEntry{
		uid: w.UID, rev: ParseRevision(w.Revision), revision: w.Revision, floor: ParseRevision(w.Floor),
		obj: w.Object, unknown: w.Unknown, lost: w.Lost, mark: s.own.marks,
	}
	switch {
	case n.deletes():
		s.own.dead.add(n.uid, 0)
	case s.own.dead.since(n.uid, 0): // nothing comes after a deletion
		n = &ownEntry{uid: n.uid, floor: n.latest(), mark: n.mark}
	}
	if n.rev == 0 && (n.obj != nil || n.uid == "") {
		n.obj, n.unknown = nil, true // it cannot be told when it is reached
	}
	e, was := s.entries[w.Key], s.own.entries[w.Key]
	if was != nil && was.uid == n.uid {
		n.floor = max(n.floor, was.floor, was.rev)
	}
	if e != nil && e.uid == n.uid {
		n.floor = max(n.floor, e.rev)
	}
	if s.delivered(w.Key, n, e) {
		return
	}
	if was != nil {
		if n = was.then(n); n == was {
			return
		}
	}
	if n.obj != nil {
		n.values = s.evaluate(n.obj)
	}
	s.own.entries[w.Key] = n
}

// delivered says that the watch was faster than the answer n. e is what is
// committed, or nil. A deletion that cannot be put in order with e becomes an
// unknown state.
func (s *Store) delivered(key client.ObjectKey, n *ownEntry, e *entry) bool {
	switch {
	case n.rev != 0:
		return s.scopeOf(key.Namespace).progress >= n.rev || e != nil && e.rev >= n.rev
	case n.uid == "":
		return false
	case e == nil:
		return s.deleted.since(n.uid, n.floor)
	case e.uid == n.uid:
		return false
	case s.deleted.since(n.uid, n.floor), n.floor != 0 && e.rev > n.floor:
		return true // another incarnation has come after it
	case n.floor == 0 || e.rev == 0:
		n.unknown = true
	}
	return false
}

// then is the entry that is left of own when n is noted too: the later one, or
// an unknown state where that cannot be told.
func (own *ownEntry) then(n *ownEntry) *ownEntry {
	switch {
	case own.lost:
		return n
	case own.rev != 0 && n.rev != 0:
		if own.rev > n.rev {
			return own
		}
		return n
	case own.uid == n.uid && n.uid != "" && n.rev != 0: // own is a state that only the server knows
		return &ownEntry{uid: n.uid, floor: n.latest(), unknown: true, mark: n.mark}
	case own.uid == n.uid && n.uid != "":
		return n
	case own.uid != "" && n.uid != "" && own.latest() != 0 && n.latest() != 0:
		// Incarnations do not overlap, so any two of their revisions tell.
		if own.latest() > n.latest() {
			return own
		}
		return n
	}
	return &ownEntry{unknown: true, mark: n.mark}
}

// latest is the newest revision known of the entry's incarnation, or 0.
func (own *ownEntry) latest() uint64 { return max(own.rev, own.floor) }

// UnknownKeys are the keys in namespace, "" means all, whose state only the
// server knows.
func (s *Store) UnknownKeys(namespace string) (keys []client.ObjectKey) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, own := range s.own.entries {
		if own.unknown && (namespace == "" || namespace == key.Namespace) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// Resolve answers an unknown state by what a live read, asked for at mark, has
// found: obj, whose revision that is, or nothing at revision.
func (s *Store) Resolve(key client.ObjectKey, mark uint64, obj client.Object, revision string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, rev := s.own.entries[key], ParseRevision(revision)
	if own == nil || !own.unknown || own.mark >= mark || rev == 0 {
		return
	}
	if e := s.entries[key]; s.scopeOf(key.Namespace).progress >= rev || e != nil && e.rev >= rev {
		delete(s.own.entries, key)
		return
	}
	n := &ownEntry{rev: rev, revision: revision, obj: obj, mark: s.own.marks}
	if obj != nil {
		n.uid, n.values = obj.GetUID(), s.evaluate(obj)
	}
	s.own.entries[key] = n
}

// seen is called for every version delivered. uid and rev are those of the
// version that is committed now, revision what the watch said.
func (o *overlay) seen(key client.ObjectKey, uid types.UID, rev uint64, revision string) {
	own := o.entries[key]
	if own == nil {
		if o.dead.since(uid, 0) {
			// The watch is not there yet: what ended the entry was not the own
			// deletion, but an earlier change that took the object out of what the
			// store selects for a while.
			o.entries[key] = &ownEntry{uid: uid, floor: rev, mark: o.marks}
		}
		return
	}
	switch {
	case own.rev != 0 && rev >= own.rev,
		own.rev == 0 && own.revision != "" && own.revision == revision,
		own.rev == 0 && own.uid != "" && own.floor != 0 && uid != own.uid && rev > own.floor:
		delete(o.entries, key)
	case own.deletes() && own.floor == 0 && uid != own.uid:
		// Another incarnation than the one deleted, and no telling which is the
		// later one: a list may have covered the creation of the deleted one, so
		// that the watch never showed it.
		own.unknown = true
	}
}

// gone is called for every deletion delivered or concluded. One that is older
// than the entry's incarnation is known to be has only taken the object out of
// what the store selects.
func (o *overlay) gone(key client.ObjectKey, uid types.UID, rev uint64) {
	own := o.entries[key]
	if own == nil {
		return
	}
	if own.rev != 0 && rev >= own.rev || own.rev == 0 && own.uid == uid && uid != "" && (rev == 0 || rev > own.floor) {
		delete(o.entries, key)
	}
}

// reached is called when a watch has delivered everything up to rev.
func (o *overlay) reached(sc *scope, rev uint64) {
	for key, own := range o.entries {
		if own.rev != 0 && own.rev <= rev && sc.covers(key.Namespace) {
			delete(o.entries, key)
		}
	}
}

// listed is called at the end of a list asked for at mark.
func (o *overlay) listed(sc *scope, mark uint64) {
	for key, own := range o.entries {
		if own.mark < mark && sc.covers(key.Namespace) {
			delete(o.entries, key)
		}
	}
}

func (o *overlay) addIndex(ix *index) {
	for _, own := range o.entries {
		if own.obj != nil {
			own.values = append(own.values, ix.fn(own.obj))
		}
	}
}
