// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"

	"github.com/steer-dev/steer/client"
)

// The indexes every store has.
const (
	NamespaceIndex = "metadata.namespace"
	OwnerIndex     = "metadata.ownerReferences.uid"
)

// LabelIndex is the name of the index of one label, made when first needed.
func LabelIndex(label string) string { return "metadata.labels/" + label }

func ownerValues(obj client.Object) []string {
	owners := obj.GetOwnerReferences()
	if len(owners) == 0 {
		return nil
	}
	uids := make([]string, len(owners))
	for i := range owners {
		uids[i] = string(owners[i].UID)
	}
	return uids
}

// index finds objects by computed values.
type index struct {
	slot     int
	name     string
	fn       func(client.Object) []string
	postings map[string]map[*entry]struct{}
}

// AddIndex makes Select find objects by fn's values. It fails when the name is
// taken.
func (s *Store) AddIndex(name string, fn func(client.Object) []string) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if _, taken := s.named[name]; taken {
		return fmt.Errorf("there is an index %q already", name)
	}
	s.addIndex(name, fn)
	return nil
}

// EnsureIndex adds the index unless it is there.
func (s *Store) EnsureIndex(name string, fn func(client.Object) []string) {
	if !s.HasIndex(name) {
		_ = s.AddIndex(name, fn) // a race for it is harmless: both are the same
	}
}

// HasIndex says that the index exists.
func (s *Store) HasIndex(name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.named[name]
	return ok
}

// addIndex builds the index beside the readers; writer is held.
func (s *Store) addIndex(name string, fn func(client.Object) []string) {
	ix := &index{slot: len(s.indexes), name: name, fn: fn, postings: map[string]map[*entry]struct{}{}}
	values := make(map[*entry][]string, len(s.entries))
	for _, e := range s.entries {
		values[e] = fn(e.obj)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for e, v := range values {
		e.values = append(e.values, v)
		ix.link(e, v)
	}
	s.indexes = append(s.indexes, ix)
	s.named[name] = ix
	s.own.addIndex(ix)
}

// evaluate runs every index function once. writer or mu is held.
func (s *Store) evaluate(obj client.Object) [][]string {
	values := make([][]string, len(s.indexes))
	for i, ix := range s.indexes {
		values[i] = ix.fn(obj)
	}
	return values
}

// reindex moves e to its new values; equal ones cost a comparison.
func (s *Store) reindex(e *entry, values [][]string) {
	for i, ix := range s.indexes {
		var before []string
		if i < len(e.values) {
			before = e.values[i]
		}
		if slices.Equal(before, values[i]) {
			continue
		}
		for _, v := range before {
			if !slices.Contains(values[i], v) {
				ix.unlink(e, v)
			}
		}
		ix.link(e, values[i])
	}
	e.values = values
}

func (s *Store) unlink(e *entry) {
	for i, ix := range s.indexes {
		for _, v := range e.values[i] {
			ix.unlink(e, v)
		}
	}
	delete(s.entries, e.key)
}

func (ix *index) link(e *entry, values []string) {
	for _, v := range values {
		posting := ix.postings[v]
		if posting == nil {
			posting = map[*entry]struct{}{}
			ix.postings[v] = posting
		}
		posting[e] = struct{}{}
	}
}

func (ix *index) unlink(e *entry, v string) {
	posting := ix.postings[v]
	delete(posting, e)
	if len(posting) == 0 {
		delete(ix.postings, v)
	}
}
