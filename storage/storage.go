// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage is a versioned key-value store with one global revision: the contract
// that an API server needs from its database, and the stores that implement it.
//
// Every write gets a revision above all others. A [View] is a consistent snapshot at one
// revision; a [Cursor] replays the writes after a revision, in order, none left out.
// Everything they show is durable: a write is acknowledged, read and watched only after
// it would survive a crash of the machine.
//
// A store may share its data with other processes. Then revisions have gaps, several
// keys may change at one revision, the revision of a write is unknown before it is
// committed, and other processes may have acknowledged writes that are still on their
// way here: [Viewer] says which reads wait for them.
//
// An [Elector] is a store of which one server at a time writes, the leader; writes of a
// server whose term has ended are refused.
//
// Keys are in buckets, one per resource ("stable.example.com/crontabs"); a view or
// cursor of one bucket does not depend on the size of others.
//
// [NewMemory] creates a volatile store, in microseconds and without a goroutine;
// package local has the durable one, which is the memory store with a [Journal]. A
// [Mirror] is what they read from, for stores whose data is elsewhere. [Save]
// and [Load] write a view to a stream and read it back. Package storagetest is the
// conformance suite of the contract:
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
// Writes are linearizable, and so are reads after [Viewer.Sync]. A write that returned
// is durable, and every later read of the same store shows it. A cursor yields every event of its range exactly once and in order, and
// its revision never overtakes one; a batch never splits a revision. The history is bounded, and a reader that cannot
// keep up gets an error while it can still resume. Old views are exact. Each sentence
// is a test in storagetest or beside its store.
package storage

import (
	"context"
	"iter"
	"sync/atomic"
	"time"
)

// Revision orders the writes of a store. It is positive, global to the store, strictly
// increasing, and never reused. Not every number is the revision of a write, and writes
// of several keys that were made at once share one.
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

// Record is one version of one key. It is immutable and shared: Value must not be
// changed. The pointer is stable while any reader holds it, so values derived from the
// record can be cached on it with [Record.Derive].
type Record struct {
	Key Key
	// Value holds the written bytes, with the revision inserted where the write asked
	// for it. For a deletion it is the last value with the revision of the deletion.
	Value []byte
	// Created is the revision that created the key.
	Created Revision
	// Modified is the revision of this version.
	Modified Revision
	// Stamp is the offset of the decimal digits of Modified in Value; 0 means none.
	Stamp int

	derived atomic.Value
}

// Derive returns the value cached on the record, computing it with build on first use.
// The result of build must depend on the record alone, be immutable, not nil and of one
// type for all records; with concurrent callers build may run more than once and the
// first result is kept.
func (r *Record) Derive(build func(*Record) any) any {
	if v := r.derived.Load(); v != nil {
		return v
	}
	r.derived.CompareAndSwap(nil, build(r))
	return r.derived.Load()
}

// Write is one change of one key.
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
	// While makes the write conditional on the version of another key, such as the
	// definition that the value was validated against. The zero value is no condition.
	While Condition
}

// Condition requires that a version of a key is the current one.
type Condition struct {
	Key Key
	// At is the Modified revision of the version.
	At Revision
}

// Event is one committed write, as watchers get it.
type Event struct {
	// Record is the new version; for a deletion the final one (see Record.Value).
	Record *Record
	// Previous is the version before it; nil for a creation.
	Previous *Record
	// Deleted is set for a deletion.
	Deleted bool
}

// Batch is the result of a cursor: the next events in revision order and the revision
// up to which the cursor has seen everything: every event of its range at or below
// Revision has been delivered or passed over. All events of one revision are in one
// batch.
type Batch struct {
	Events   []Event
	Revision Revision
}

// View is a consistent snapshot of a store at one revision. It is safe for concurrent
// use and has no cost except that it keeps its records in memory.
type View interface {
	// Revision returns the revision of the snapshot.
	Revision() Revision
	// Get returns the version of key, or nil if it does not exist.
	Get(key Key) *Record
	// Ascend yields the records of a bucket whose name has the prefix and is
	// not below start, in byte order of the names.
	Ascend(bucket, prefix, start string) iter.Seq[*Record]
	// Count returns how many records Ascend would yield, without visiting them.
	Count(bucket, prefix, start string) int
	// Buckets yields the names of the buckets that hold records, in byte order.
	Buckets() iter.Seq[string]
}

// Viewer reads the store. Latest, Get and LastModified read the newest state that this
// process has, which includes its own acknowledged writes, and ask no other: a store that
// shares its data may not have the newest write of another process yet. Sync waits for
// those; an API server calls it once for each request that must see them.
type Viewer interface {
	// Latest returns the newest snapshot.
	Latest() View
	// Get returns the newest version of a key, or nil if it does not exist. It
	// takes no snapshot: after a snapshot, the next write must copy the path to the
	// record that it changes.
	Get(key Key) *Record
	// LastModified returns the revision of the newest write to any of the
	// buckets, or 0 if the store knows of none: as long as the result is the same, so
	// are the contents of the buckets. It takes no snapshot.
	LastModified(buckets ...string) Revision
	// View returns the snapshot at a revision, which may lie in a gap. For 0 it is that
	// of Latest after a Sync. It fails with [ErrCompacted] below the history and with
	// [ErrFuture] above the newest revision.
	View(ctx context.Context, at Revision) (View, error)
	// Sync returns once the store has every write that any process acknowledged more
	// than lag before the call; 0 is all of them. It fails if ctx ends before, and, where
	// the data is elsewhere, with the error of reaching it.
	Sync(ctx context.Context, lag time.Duration) error
}

// Committer writes to the store.
type Committer interface {
	// Commit applies one write and returns its record once it is durable and can be
	// read: the one that readers and watchers of this store have. An
	// expectation that does not hold fails with a [*ConflictError]; so does deleting an
	// absent key with [AnyRevision]. A condition that does not hold fails with
	// [ErrUnmet], in any state of the key itself. What a refused write was refused for
	// can be read when Commit returns. If ctx ends first the outcome is unknown.
	Commit(ctx context.Context, w Write) (*Record, error)
}

// Range selects what a cursor follows.
type Range struct {
	// Bucket to follow; empty follows all buckets.
	Bucket string
	// Prefix of the names in the bucket.
	Prefix string
	// WakeOn selects the events that end the waiting of [Cursor.Next]. While it waits,
	// other events are passed over: they are not delivered and wake no goroutine.
	// Events that are there when Next is called are delivered without a filter. WakeOn
	// is called by the writer, in the order of the revisions, for one event at a time
	// and only while Next waits; it must be fast and must not use the store. Nil: all
	// events.
	WakeOn func(Event) bool
}

// Watcher follows the store.
type Watcher interface {
	// Watch returns a cursor over the events of a range with revisions above after. It
	// fails with [ErrCompacted] if the history no longer reaches back to after, and
	// with [ErrFuture] if the store has not reached it.
	Watch(r Range, after Revision) (Cursor, error)
}

// Cursor is one reader's position in the history. Its methods are for one goroutine at
// a time, except Close. It holds no goroutine and no buffer: a slow reader costs no
// memory.
type Cursor interface {
	// Next waits for at least one event. It fails with [ErrLagged] once the reader is
	// too far behind, early enough that a new Watch from the last Batch.Revision still
	// succeeds. If the reader stayed away until its events were dropped, the error
	// matches [ErrCompacted] as well. It fails with [ErrClosed] after Close of the
	// cursor or the store. Available events are returned even if ctx has ended.
	Next(ctx context.Context) (Batch, error)
	// Poll returns the available events without waiting, possibly none but a newer
	// Revision. Errors are those of Next.
	Poll() (Batch, error)
	// Close releases the cursor and wakes a waiting Next. It is idempotent.
	Close()
}

// Keeper maintains the store.
type Keeper interface {
	// Compact drops the history below a revision: views and watches from before it fail
	// with [ErrCompacted]. Compacting a compacted revision is no error.
	Compact(ctx context.Context, below Revision) error
	// Health returns nil while the store acknowledges writes, and otherwise an error
	// with the cause and what to do about it (see [ErrPoisoned]).
	Health() error
	// Close flushes and releases everything. It is idempotent and waits.
	Close() error
}

// Store is a versioned key-value store. All methods are safe for concurrent use.
// What changes the state in memory and wakes cursors is one ordered path: the Revision
// that a cursor reports never overtakes an event.
type Store interface {
	Viewer
	Committer
	Watcher
	Keeper
}

// Forker is a store that can be copied in constant time.
type Forker interface {
	// Fork returns an independent store with the same contents and revision, sharing
	// all records. The history before the fork is not copied: watches can start at the
	// revision of the fork.
	Fork() Store
}
