// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"

	"github.com/steer-dev/steer/client"
)

// Term asks for objects whose index has the value, or, negated, has it not.
type Term struct {
	Index, Value string
	Not          bool
}

// Query selects objects. Its zero value selects all.
type Query struct {
	Namespace string
	Terms     []Term
	// Match has the last word; nil means yes. It runs under the store's read
	// lock and must not call the store.
	Match func(client.Object) bool
}

// Answer says where an answer came from.
type Answer uint8

const (
	// Committed answers come from the watch alone.
	Committed Answer = iota
	// Merged answers contain own writes that the watch has not delivered.
	Merged
	// Unknown means that an own write has changed the answer in a way that is
	// not known here: ask the server.
	Unknown
)

// Get is the object at key, nil when there is none. It is shared: copy it
// before handing it out.
func (s *Store) Get(key client.ObjectKey) (client.Object, Answer) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.own.entries) > 0 {
		if own, ok := s.own.entries[key]; ok {
			if own.unknown {
				return nil, Unknown
			}
			return own.obj, Merged
		}
	}
	if e, ok := s.entries[key]; ok {
		return e.obj, Committed
	}
	return nil, Committed
}

// Select is the objects that q selects, in order of key, appended to out.
func (s *Store) Select(q Query, out []client.Object) ([]client.Object, Answer) {
	s.mu.RLock()
	found, answer := s.find(q)
	s.mu.RUnlock()
	slices.SortFunc(found, func(a, b hit) int { return compareKeys(a.key, b.key) })
	out = slices.Grow(out, len(found))
	for _, h := range found {
		out = append(out, h.obj)
	}
	return out, answer
}

// hit is one object found; entries may change once the lock is gone.
type hit struct {
	key client.ObjectKey
	obj client.Object
}

func (s *Store) find(q Query) ([]hit, Answer) {
	terms := q.Terms
	if q.Namespace != "" {
		terms = append(slices.Clip(terms), Term{Index: NamespaceIndex, Value: q.Namespace})
	}
	candidates, narrowed := s.candidates(terms)
	size := len(candidates)
	if !narrowed {
		size = len(s.entries)
	}
	found := make([]hit, 0, size+len(s.own.entries))
	consider := func(e *entry) {
		if len(s.own.entries) > 0 {
			if _, hidden := s.own.entries[e.key]; hidden {
				return
			}
		}
		if s.matches(terms, e.values) && (q.Match == nil || q.Match(e.obj)) {
			found = append(found, hit{e.key, e.obj})
		}
	}
	if narrowed {
		for e := range candidates {
			consider(e)
		}
	} else {
		for _, e := range s.entries {
			consider(e)
		}
	}
	answer := Committed
	for key, own := range s.own.entries {
		if q.Namespace != "" && key.Namespace != q.Namespace {
			continue
		}
		if own.unknown {
			return nil, Unknown
		}
		answer = Merged
		if own.obj != nil && s.matches(terms, own.values) && (q.Match == nil || q.Match(own.obj)) {
			found = append(found, hit{key, own.obj})
		}
	}
	return found, answer
}

// candidates is the smallest posting that a term allows.
func (s *Store) candidates(terms []Term) (smallest map[*entry]struct{}, narrowed bool) {
	for _, t := range terms {
		ix := s.named[t.Index]
		if ix == nil || t.Not {
			continue
		}
		if posting := ix.postings[t.Value]; !narrowed || len(posting) < len(smallest) {
			smallest, narrowed = posting, true
		}
	}
	return smallest, narrowed
}

// matches checks terms against computed values; a term on an index that does
// not exist matches nothing.
func (s *Store) matches(terms []Term, values [][]string) bool {
	for _, t := range terms {
		ix := s.named[t.Index]
		if ix == nil || slices.Contains(values[ix.slot], t.Value) == t.Not {
			return false
		}
	}
	return true
}

// Keys are those of all objects in namespace, "" means all, own writes included.
func (s *Store) Keys(namespace string) (keys []client.ObjectKey) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key := range s.entries {
		if namespace == "" || namespace == key.Namespace {
			keys = append(keys, key)
		}
	}
	for key := range s.own.entries {
		if _, known := s.entries[key]; !known && (namespace == "" || namespace == key.Namespace) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// All is every committed object in order of key: what handlers have seen.
func (s *Store) All() []client.Object {
	s.mu.RLock()
	entries := make([]*entry, 0, len(s.entries))
	objects := make(map[*entry]client.Object, len(s.entries))
	for _, e := range s.entries {
		entries = append(entries, e)
		objects[e] = e.obj
	}
	s.mu.RUnlock()
	slices.SortFunc(entries, byKey)
	out := make([]client.Object, len(entries))
	for i, e := range entries {
		out[i] = objects[e]
	}
	return out
}
