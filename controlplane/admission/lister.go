// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/steer-dev/steer/controlplane/internal/derived"
	"github.com/steer-dev/steer/storage"
)

// Lister reads the objects of one bucket, and decodes each version once. Results
// are shared and must not be changed. It keeps at most twice as many objects as there are.
type Lister[T any] struct {
	store  storage.Viewer
	bucket string
	lists  *derived.Value[*lists[T]]

	mu    sync.Mutex
	known map[string]version[T] // by name in the bucket
	// sweepAt is how many known objects make the lister forget those that are gone.
	sweepAt int
}

// lists holds objects by the prefixes of their names, while nothing in the bucket changes.
type lists[T any] struct {
	mu       sync.Mutex
	byPrefix map[string][]*T
}

// version is one version of an object.
type version[T any] struct {
	modified storage.Revision
	obj      *T
}

// mostPrefixes is up to how many prefixes a lister keeps one that no object has.
const mostPrefixes = 4096

// leastSweep is the least number of known objects at which a lister forgets those that are gone.
const leastSweep = 1024

// NewLister returns a lister of the objects in a bucket, which the store keeps as JSON of T.
func NewLister[T any](store storage.Viewer, bucket string) *Lister[T] {
	empty := func(storage.View, *lists[T]) (*lists[T], error) { return &lists[T]{byPrefix: map[string][]*T{}}, nil }
	return &Lister[T]{
		store: store, bucket: bucket, lists: derived.New(store, empty, bucket), known: map[string]version[T]{}, sweepAt: leastSweep,
	}
}

// Get returns the object of a name, nil if there is none.
func (s *Lister[T]) Get(name string) (*T, error) {
	rec := s.store.Get(storage.Key{Bucket: s.bucket, Name: name})
	if rec == nil {
		return nil, nil
	}
	return s.decode(rec)
}

// All returns the objects whose names in the bucket have a prefix, by name.
func (s *Lister[T]) All(prefix string) ([]*T, error) {
	now, err := s.lists.Get()
	if err != nil {
		return nil, fmt.Errorf("admission: read %s: %w", s.bucket, err)
	}
	now.mu.Lock()
	out, ok := now.byPrefix[prefix]
	now.mu.Unlock()
	if ok {
		return out, nil
	}
	view := s.store.Latest() // if it is newer than the lists, the next call replaces them
	for rec := range view.Ascend(s.bucket, prefix, "") {
		obj, err := s.decode(rec)
		if err != nil {
			return nil, err
		}
		out = append(out, obj)
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	if len(out) > 0 || len(now.byPrefix) < mostPrefixes {
		now.byPrefix[prefix] = out
	}
	return out, nil
}

func (s *Lister[T]) decode(rec *storage.Record) (*T, error) {
	s.mu.Lock()
	v, ok := s.known[rec.Key.Name]
	s.mu.Unlock()
	if ok && v.modified == rec.Modified {
		return v.obj, nil
	}
	obj := new(T)
	if err := json.Unmarshal(rec.Value, obj); err != nil {
		return nil, fmt.Errorf("admission: read %s %s: %w", s.bucket, rec.Key.Name, err)
	}
	s.mu.Lock()
	s.known[rec.Key.Name] = version[T]{modified: rec.Modified, obj: obj}
	sweep := len(s.known) > s.sweepAt
	s.mu.Unlock()
	if sweep {
		s.sweep()
	}
	return obj, nil
}

// sweep forgets the objects that are gone. The next time is when twice as many are known as
// remain.
func (s *Lister[T]) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.known {
		if s.store.Get(storage.Key{Bucket: s.bucket, Name: name}) == nil {
			delete(s.known, name)
		}
	}
	s.sweepAt = max(leastSweep, 2*len(s.known))
}
