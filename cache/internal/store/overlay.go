// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
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
}

// ownEntry is an own write that the watch has not delivered.
type ownEntry struct {
	uid      types.UID
	rev      uint64 // 0 when unknown
	revision string
	floor    uint64
	obj      client.Object
	unknown  bool
	values   [][]string
	mark     uint64
}

// overlay is the own writes on top of the committed layer; the store's mu
// guards it.
//
// An entry goes when the watch has reached its revision: by a version of the
// object that is as new, or by progress of the whole watch. A deletion without
// a revision goes when the deletion of its uid, or a later incarnation, is
// delivered; an unknown state without a revision when a live read has given it
// one. A deletion that cannot be put in order with an incarnation delivered
// becomes an unknown state. A list that was asked for after the write covers it
// in any case.
type overlay struct {
	entries map[client.ObjectKey]*ownEntry
	marks   uint64
}

// Mark numbers a moment: own writes before it are covered by a consistent list
// asked for after it.
func (s *Store) Mark() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own.marks++
	return s.own.marks
}

// Write notes an own write.
func (s *Store) Write(w Own) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &ownEntry{
		uid: w.UID, rev: ParseRevision(w.Revision), revision: w.Revision, floor: ParseRevision(w.Floor),
		obj: w.Object, unknown: w.Unknown, mark: s.own.marks,
	}
	e := s.entries[w.Key]
	switch {
	case n.rev != 0 && s.scopeOf(w.Key.Namespace).progress >= n.rev:
		return // the watch was faster
	case n.rev != 0 && e != nil && e.rev >= n.rev:
		return
	case n.rev == 0 && !n.unknown && n.obj == nil && s.deleted.has(n.uid):
		return // the deletion has been delivered
	case n.rev == 0 && n.obj != nil, n.rev == 0 && n.uid == "":
		n.obj, n.unknown = nil, true // nobody could tell when it is reached
	}
	if was := s.own.entries[w.Key]; was != nil {
		if n.rev != 0 && was.rev > n.rev {
			return // answers may arrive out of order
		}
		if was.rev == 0 && was.obj == nil && !was.unknown && was.uid != "" && was.uid == n.uid {
			return // nothing comes after a deletion
		}
		n.floor = max(n.floor, was.floor, was.rev)
	}
	if e != nil && e.uid == n.uid {
		n.floor = max(n.floor, e.rev)
	}
	if n.obj != nil {
		n.values = s.evaluate(n.obj)
	}
	s.own.entries[w.Key] = n
}

// ResolveList gives the unknown states that a live list, asked for at mark, has
// answered the revision of that list.
func (s *Store) ResolveList(namespace string, mark uint64, revision string) {
	rev := ParseRevision(revision)
	if rev == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, own := range s.own.entries {
		if !own.unknown || own.rev != 0 || own.mark >= mark || namespace != "" && namespace != key.Namespace {
			continue
		}
		own.rev = rev
		if s.scopeOf(key.Namespace).progress >= rev {
			delete(s.own.entries, key)
		}
	}
}

// Resolve answers an Unknown entry by the state that a live read found after it.
func (s *Store) Resolve(key client.ObjectKey, obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own.entries[key]
	if own == nil || !own.unknown || obj == nil {
		return
	}
	rev := ParseRevision(obj.GetResourceVersion())
	if rev == 0 || rev < own.rev {
		return
	}
	if e := s.entries[key]; s.scopeOf(key.Namespace).progress >= rev || e != nil && e.rev >= rev {
		delete(s.own.entries, key)
		return
	}
	own.unknown, own.obj, own.rev, own.uid, own.revision = false, obj, rev, obj.GetUID(), obj.GetResourceVersion()
	own.values = s.evaluate(obj)
}

// seen is called for every version delivered. uid and rev are those of the
// version that is committed now, revision what the watch said.
func (o *overlay) seen(key client.ObjectKey, uid types.UID, rev uint64, revision string) {
	own := o.entries[key]
	if own == nil {
		return
	}
	switch {
	case own.rev != 0 && rev >= own.rev,
		own.rev == 0 && own.revision != "" && own.revision == revision,
		own.rev == 0 && !own.unknown && own.floor != 0 && uid != own.uid && rev > own.floor:
		delete(o.entries, key)
	case own.rev == 0 && own.floor == 0 && uid != own.uid:
		// Another incarnation than the one deleted, and no telling which is the
		// later one: a list may have covered the creation of the deleted one, so
		// that the watch never showed it.
		own.unknown = true
	}
}

// gone is called for every deletion delivered.
func (o *overlay) gone(key client.ObjectKey, uid types.UID, rev uint64) {
	own := o.entries[key]
	if own == nil {
		return
	}
	if own.rev != 0 && rev >= own.rev || own.uid == uid && own.rev == 0 || own.uid == uid && own.obj == nil {
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
