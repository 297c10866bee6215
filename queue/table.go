// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "hash/maphash"

// table finds the entries of keys. It is a map that hashes a key once per trip, since
// entries know their hashes, and that touches no entry but the one it looks for.
type table[K comparable] struct {
	seed maphash.Seed
	// slots are 2^n. An entry is in the first that was free from the one on that its
	// hash says, and there is none free in between.
	slots []slot[K]
	len   int
}

type slot[K comparable] struct {
	hash  uint64
	entry *entry[K] // nil: free
}

const (
	// leastSlots is how many slots a table has at first.
	leastSlots = 16
	// mostIdleSlots is how many slots an empty table keeps.
	mostIdleSlots = 1 << 14
)

func newTable[K comparable]() table[K] {
	return table[K]{seed: maphash.MakeSeed(), slots: make([]slot[K], leastSlots)}
}

func (t *table[K]) hash(key K) uint64 { return maphash.Comparable(t.seed, key) }

func (t *table[K]) mask() uint64 { return uint64(len(t.slots) - 1) }

// find returns the entry of a key with the hash, or nil.
func (t *table[K]) find(key K, hash uint64) *entry[K] {
	for at := hash & t.mask(); ; at = (at + 1) & t.mask() {
		s := &t.slots[at]
		if s.entry == nil || s.hash == hash && s.entry.key == key {
			return s.entry
		}
	}
}

// insert adds an entry, whose key is not there.
func (t *table[K]) insert(e *entry[K]) {
	if 3*(t.len+1) > 2*len(t.slots) {
		t.resize(2 * len(t.slots))
	}
	t.len++
	t.place(slot[K]{e.hash, e})
}

func (t *table[K]) place(s slot[K]) {
	at := s.hash & t.mask()
	for t.slots[at].entry != nil {
		at = (at + 1) & t.mask()
	}
	t.slots[at] = s
}

// remove takes an entry out that is there. What comes behind it moves up, unless it is
// where its hash says.
func (t *table[K]) remove(e *entry[K]) {
	mask := t.mask()
	free := e.hash & mask
	for t.slots[free].entry != e {
		free = (free + 1) & mask
	}
	for at := (free + 1) & mask; t.slots[at].entry != nil; at = (at + 1) & mask {
		if first := t.slots[at].hash & mask; (at-first)&mask >= (at-free)&mask {
			t.slots[free] = t.slots[at]
			free = at
		}
	}
	t.slots[free] = slot[K]{}
	if t.len--; t.len == 0 && len(t.slots) > mostIdleSlots {
		t.resize(leastSlots) // a burst is over
	}
}

func (t *table[K]) resize(n int) {
	old := t.slots
	t.slots = make([]slot[K], n)
	for _, s := range old {
		if s.entry != nil {
			t.place(s)
		}
	}
}

// all lists the entries.
func (t *table[K]) all() []*entry[K] {
	out := make([]*entry[K], 0, t.len)
	for _, s := range t.slots {
		if s.entry != nil {
			out = append(out, s.entry)
		}
	}
	return out
}
