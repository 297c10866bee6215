// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package derived keeps what is computed from stored objects for as long as the objects do
// not change: an index of roles, the admission policies in force.
//
// A [Value] is computed from the objects of some buckets, at the first call after one of
// them was written. [Versions] computes something from each version of an object once, for
// values that are made of many objects. The package is short because it is the one
// mechanism that packages of the control plane have in common, and knows none of them.
package derived

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/steer-dev/steer/storage"
)

// Value is computed from the objects of some buckets. A call of Get after a write has
// been answered returns a value that includes the write. It is safe for concurrent use, and
// holds on to no view of the store.
type Value[T any] struct {
	store   storage.Viewer
	buckets []string
	compute func(view storage.View, before T) (T, error)

	computing sync.Mutex // one at a time
	now       atomic.Pointer[state[T]]
}

// state is a value, and the last write to the buckets that it includes.
type state[T any] struct {
	at    storage.Revision
	value T
}

// New returns a value that compute makes of the contents of buckets. before is the value
// that it replaces, the zero value at first. Values are shared: compute does not change the
// earlier one. It is called by one goroutine at a time, and not before the first Get.
func New[T any](store storage.Viewer, compute func(view storage.View, before T) (T, error), buckets ...string) *Value[T] {
	return &Value[T]{store: store, buckets: buckets, compute: compute}
}

// Get returns the value for the present contents of the buckets. After an error of compute,
// the next call computes again.
func (v *Value[T]) Get() (T, error) {
	at := v.store.LastModified(v.buckets...)
	if now := v.now.Load(); now != nil && now.at >= at {
		return now.value, nil
	}
	view := v.store.Latest()
	v.computing.Lock()
	defer v.computing.Unlock()
	before := v.now.Load()
	if before == nil {
		before = &state[T]{}
	} else if before.at >= at {
		return before.value, nil
	}
	value, err := v.compute(view, before.value)
	if err != nil {
		return *new(T), err
	}
	v.now.Store(&state[T]{at, value})
	return value, nil
}

// Versions holds what was made of the present version of each object of a bucket. It is
// for one goroutine at a time, as the compute function of a [Value] is.
type Versions[T any] struct {
	bucket string
	from   func(rec *storage.Record, before T) (T, error)
	known  map[string]version[T] // by name in the bucket
}

type version[T any] struct {
	modified storage.Revision
	made     T
}

// NewVersions returns one in which each version of an object of a bucket is passed to from
// once. before is what was made of the last version, the zero value if there was none.
func NewVersions[T any](bucket string, from func(rec *storage.Record, before T) (T, error)) *Versions[T] {
	return &Versions[T]{bucket: bucket, from: from}
}

// Read returns what was made of the objects of a view, by name, and forgets all other
// versions.
func (v *Versions[T]) Read(view storage.View) ([]T, error) {
	var out []T
	now := map[string]version[T]{}
	for rec := range view.Ascend(v.bucket, "", "") {
		known := v.known[rec.Key.Name]
		if known.modified != rec.Modified {
			made, err := v.from(rec, known.made)
			if err != nil {
				return nil, fmt.Errorf("read %s %s: %w", v.bucket, rec.Key.Name, err)
			}
			known = version[T]{rec.Modified, made}
		}
		now[rec.Key.Name] = known
		out = append(out, known.made)
	}
	v.known = now
	return out, nil
}
