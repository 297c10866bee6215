// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/steer-dev/steer/storage"
)

// Lister reads the objects of one bucket, and decodes each version once. Results
// are shared and must not be changed.
type Lister[T any] struct {
	store   storage.Viewer
	bucket  string
	buckets []string // nothing but bucket

	mu    sync.Mutex
	known map[string]version[T] // by name in the bucket
	lists map[string]list[T]    // by prefix
}

// list holds the objects with a prefix as of one revision of the bucket.
type list[T any] struct {
	touched storage.Revision
	objs    []*T
}

// version is one version of an object.
type version[T any] struct {
	modified storage.Revision
	obj      *T
}

// mostKnown bounds what a Lister keeps; objects that are gone stay until then.
const mostKnown = 1024

// NewLister returns a lister of the objects in a bucket, which the store keeps as JSON of T.
func NewLister[T any](store storage.Viewer, bucket string) *Lister[T] {
	return &Lister[T]{store: store, bucket: bucket, buckets: []string{bucket}, known: map[string]version[T]{}, lists: map[string]list[T]{}}
}

// LastModified returns the revision of the last change of any object.
func (s *Lister[T]) LastModified(ctx context.Context) (storage.Revision, error) {
	at, err := s.store.LastModified(ctx, s.buckets...)
	if err != nil {
		return 0, fmt.Errorf("admission: read %s: %w", s.bucket, err)
	}
	return at, nil
}

// Get returns the object of a name, nil if there is none.
func (s *Lister[T]) Get(ctx context.Context, name string) (*T, error) {
	rec, err := s.store.Get(ctx, storage.Key{Bucket: s.bucket, Name: name})
	if err != nil {
		return nil, fmt.Errorf("admission: read %s: %w", s.bucket, err)
	}
	if rec == nil {
		return nil, nil
	}
	return s.decode(rec)
}

// All returns the objects whose names in the bucket have a prefix, by name.
func (s *Lister[T]) All(ctx context.Context, prefix string) ([]*T, error) {
	touched, err := s.LastModified(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	l, ok := s.lists[prefix]
	s.mu.Unlock()
	if ok && l.touched == touched {
		return l.objs, nil
	}
	view, err := s.store.View(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("admission: read %s: %w", s.bucket, err)
	}
	var out []*T
	for rec := range view.Ascend(s.bucket, prefix, "") {
		obj, err := s.decode(rec)
		if err != nil {
			return nil, err
		}
		out = append(out, obj)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lists) >= mostKnown {
		clear(s.lists)
	}
	s.lists[prefix] = list[T]{touched, out} // or newer: then it is read again
	return out, nil
}

func (s *Lister[T]) decode(rec *storage.Record) (*T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.known[rec.Key.Name]; ok && v.modified == rec.Modified {
		return v.obj, nil
	}
	obj := new(T)
	if err := json.Unmarshal(rec.Value, obj); err != nil {
		return nil, fmt.Errorf("admission: read %s %s: %w", s.bucket, rec.Key.Name, err)
	}
	if len(s.known) >= mostKnown {
		clear(s.known)
	}
	s.known[rec.Key.Name] = version[T]{modified: rec.Modified, obj: obj}
	return obj, nil
}
