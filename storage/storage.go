// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage keeps versioned bytes under one global revision: the contract
// that an API server needs from its database, and the stores that fulfil it.
//
// Every write gets the next revision. A [View] is a consistent snapshot at one
// revision; a [Cursor] replays the writes after a revision, in order, without
// gaps. What any of them shows is durable: a write is acknowledged, read and
// watched only after it would survive a crash of the machine.
//
// Keys live in buckets, one per resource ("stable.example.com/crontabs"); views
// and cursors never need to look beyond their bucket.
//
// [NewMemory] makes a volatile store, in microseconds and without a goroutine;
// package local has the durable one, which is the memory store with a [Journal].
// [Save] and [Load] turn a view into a stream and back. Package storagetest
// proves that a store, these or another, keeps the contract:
//
//	s := storage.NewMemory(storage.MemoryOptions{})
//	rec, err := s.Commit(ctx, storage.Write{
//		Key:   storage.Key{Bucket: "example.com/widgets", Name: "default/one"},
//		Value: object, // the revision is inserted at Stamp
//		Stamp: offset, Expect: storage.Absent,
//	})
//	view, err := s.View(ctx, 0)
//	cursor, err := s.Watch(storage.Range{Bucket: "example.com/widgets"}, view.Revision())
//	batch, err := cursor.Next(ctx)
//
// # Guarantees
//
// Writes are linearizable, and so are reads of the newest view. A write that
// returned is durable. A cursor yields every event of its range exactly once and
// in order, and its revision never overtakes one. The history is bounded, and a
// reader that cannot keep up is told so while it can still resume. Old views
// are exact. Each sentence is a test in storagetest or beside its store.
package storage

import (
	"context"
	"iter"
	"sync/atomic"
)

// Revision counts the writes of a store. It starts at 1 with the first write,
// is global to the store, strictly increasing, and never reused.
type Revision int64

// Expectations of a [Write] other than a concrete revision.
const (
	// Absent expects that the key does not exist.
	Absent Revision = 0
	// AnyRevision accepts any current state of the key.
	AnyRevision Revision = -1
)

// Bounds of a write, in bytes.
const (
	// MaxKey bounds the bucket and the name of a key.
	MaxKey = 4 << 10
	// MaxValue bounds a value.
	MaxValue = 16 << 20
)

// Key names one value: a bucket and the name in it. For API objects the name is
// "namespace/name", or "name" in a cluster-scoped bucket.
type Key struct {
	Bucket string
	Name   string
}

// String returns bucket and name joined by a slash.
func (k Key) String() string { return k.Bucket + "/" + k.Name }

// Record is one version of one key. It is immutable and shared: nobody may
// write to Value. Its identity is stable while any reader holds it, so what is
// derived from it can be remembered on it with [Record.Derive].
type Record struct {
	Key Key
	// Value holds the bytes as written, with the revision stamped in where the
	// write asked for it. For a deletion it is the last value, stamped with the
	// revision of the deletion.
	Value []byte
	// Created is the revision that brought the key into being.
	Created Revision
	// Modified is the revision of this version.
	Modified Revision
	// Stamp is the offset of the stamped decimal digits of Modified in Value;
	// 0 means none.
	Stamp int

	derived atomic.Value
}

// Derive returns the value remembered on the record, computing it with build on
// first use. What build returns must depend on the record alone, be immutable, not
// nil and of one type for all records, and may be computed more than once when
// callers race: the first one stays.
func (r *Record) Derive(build func(*Record) any) any {
	if v := r.derived.Load(); v != nil {
		return v
	}
	r.derived.CompareAndSwap(nil, build(r))
	return r.derived.Load()
}

// Write asks for one change of one key.
type Write struct {
	Key Key
	// Value is the new value; nil deletes the key. The store keeps the slice.
	Value []byte
	// Stamp is the offset in Value at which the store inserts the decimal
	// digits of the revision it assigns; 0 inserts nothing.
	Stamp int
	// Expect is the revision the key must have: [Absent], [AnyRevision] or the
	// Modified revision of the version that the change was computed from.
	Expect Revision
	// While holds the write to the state of another key as well, such as the
	// record that says what the value must be like. The zero value holds it to
	// nothing.
	While Condition
}

// Condition names the version of a key that must be the current one.
type Condition struct {
	Key Key
	// At is the Modified revision of the version.
	At Revision
}

// Event is one committed write as a watcher sees it.
type Event struct {
	// Record is the new version; for a deletion the final one (see Record.Value).
	Record *Record
	// Previous is the version before it; nil for a creation.
	Previous *Record
	// Deleted tells a deletion.
	Deleted bool
}

// Batch is what a cursor yields: the next events in revision order and the
// revision up to which the cursor has seen everything, so that
// every event of its range at or below Revision has been delivered or passed over.
type Batch struct {
	Events   []Event
	Revision Revision
}

// View is a consistent snapshot of a store at one revision. It is safe for
// concurrent use and costs nothing to keep, except that it pins its records.
type View interface {
	// Revision of the snapshot.
	Revision() Revision
	// Get returns the version of key, or nil when it does not exist.
	Get(key Key) *Record
	// Ascend yields the records of a bucket whose name has the prefix and is
	// not below start, in byte order of the names.
	Ascend(bucket, prefix, start string) iter.Seq[*Record]
	// Count tells how many records Ascend would yield, without visiting them.
	Count(bucket, prefix, start string) int
	// Buckets yields the names of the buckets that hold records, in byte order.
	Buckets() iter.Seq[string]
}

// Viewer reads.
type Viewer interface {
	// Get returns the newest durable version of a key, or nil when it does not
	// exist. It takes no snapshot: after one, the next write has to copy the way to
	// what it changes.
	Get(ctx context.Context, key Key) (*Record, error)
	// LastModified returns the revision of the newest durable write to any of the
	// buckets, or 0 if there was none that this store knows of: while the answer
	// stays the same, so does what they hold. It takes no snapshot either.
	LastModified(ctx context.Context, buckets ...string) (Revision, error)
	// View returns the snapshot at a revision, or the newest durable one for 0.
	// It fails with [ErrCompacted] below the history and with [ErrFuture] above
	// the newest revision. A store that is not alone with its data (etcd) uses
	// ctx to learn the newest revision.
	View(ctx context.Context, at Revision) (View, error)
}

// Committer changes the store.
type Committer interface {
	// Commit applies one write and returns its record once it is durable.
	// An expectation that does not hold fails with a [*ConflictError]; deleting
	// an absent key with [AnyRevision] fails with one as well. A condition that does
	// not hold fails with [ErrUnmet], whatever the key itself is like. When ctx
	// ends first the outcome is unknown.
	Commit(ctx context.Context, w Write) (*Record, error)
}

// Range selects what a cursor follows.
type Range struct {
	// Bucket to follow; empty follows all buckets.
	Bucket string
	// Prefix of the names in the bucket.
	Prefix string
	// WakeOn selects the events that end the waiting of [Cursor.Next]. While it waits,
	// others are passed over: they are not delivered, and nobody is woken for them.
	// What is there when Next is called is delivered, whatever it is. It is asked by
	// whoever writes, in the order of the revisions, about one event at a time and
	// not while Next does not wait; it must be quick and must not use the store.
	// Nil: all do.
	WakeOn func(Event) bool
}

// Watcher follows the store.
type Watcher interface {
	// Watch returns a cursor over the events of a range with revisions above
	// after. It fails with [ErrCompacted] when the history no longer reaches
	// back to after, and with [ErrFuture] when after was never assigned.
	Watch(r Range, after Revision) (Cursor, error)
}

// Cursor is one reader's place in the history. Its methods are for one
// goroutine at a time, except Close. It holds no goroutine and no buffer:
// a slow reader costs nothing but its place.
type Cursor interface {
	// Next waits for at least one event. It fails with [ErrLagged] once the
	// reader is so far behind that the store gives up on it, early enough that
	// a new Watch from the last Batch.Revision still succeeds. Only if the reader
	// stayed away until its events were forgotten, the error matches
	// [ErrCompacted] as well. It fails with [ErrClosed] after Close of the cursor
	// or the store. What there is comes before the end of ctx.
	Next(ctx context.Context) (Batch, error)
	// Poll returns what is there at once, possibly no events but a newer
	// Revision. Errors are those of Next.
	Poll() (Batch, error)
	// Close releases the cursor and wakes a waiting Next. It is idempotent.
	Close()
}

// Keeper runs the store's own life.
type Keeper interface {
	// Compact forgets the history below a revision: views and watches from
	// before it fail with [ErrCompacted]. Compacting what is gone is no error.
	Compact(ctx context.Context, below Revision) error
	// Health returns nil while the store acknowledges writes, and what is wrong
	// and what to do about it when it no longer does (see [ErrPoisoned]).
	Health() error
	// Close flushes and releases everything. It is idempotent and waits.
	Close() error
}

// Store is a versioned key-value store. All methods are safe for concurrent
// use. Revision assignment, the log, the in-memory state and the hand-off to
// cursors are one ordered path: what a cursor reports as its Revision can
// never overtake an event.
type Store interface {
	Viewer
	Committer
	Watcher
	Keeper
}

// Forker is a store that can be copied in constant time.
type Forker interface {
	// Fork returns an independent store with the same contents and revision,
	// sharing all records. The history before the fork is not carried over:
	// watches can start at the revision of the fork.
	Fork() Store
}
