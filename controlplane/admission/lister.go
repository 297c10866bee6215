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

// lister reads the objects of one bucket, and decodes each version once. Results
// are shared and must not be changed.
type lister[T any] struct {
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

// mostKnown bounds what a lister keeps; objects that are gone stay until then.
const mostKnown = 1024

func newLister[T any](store storage.Viewer, bucket string) *lister[T] {
	return &lister[T]{store: store, bucket: bucket, buckets: []string{bucket}, known: map[string]version[T]{}, lists: map[string]list[T]{}}
}

// get returns the object of a name, nil if there is none.
func (s *lister[T]) get(ctx context.Context, name string) (*T, error) {
	rec, err := s.store.Get(ctx, storage.Key{Bucket: s.bucket, Name: name})
	if err != nil {
		return nil, fmt.Errorf("admission: read %s: %w", s.bucket, err)
	}
	if rec == nil {
		return nil, nil
	}
	return s.decode(rec)
}

// all returns the objects whose names in the bucket have a prefix, by name.
func (s *lister[T]) all(ctx context.Context, prefix string) ([]*T, error) {
	touched, err := s.store.LastModified(ctx, s.buckets...)
	if err != nil {
		return nil, fmt.Errorf("admission: read %s: %w", s.bucket, err)
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

func (s *lister[T]) decode(rec *storage.Record) (*T, error) {
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
