// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MemoryOptions configures a [Memory] store or a [Mirror]. The zero value is an empty
// one with the default history.
type MemoryOptions struct {
	// From is the initial state and revision; nil is empty at revision 0. A view of a
	// Memory store, or one that [Load] returned, is used in constant time; any other
	// one is copied.
	From View
	// HistoryAge bounds how long events stay readable. 0 means 5 minutes.
	HistoryAge time.Duration
	// HistoryBytes bounds the memory that only the history keeps alive, in bytes. 0
	// means 64 MiB.
	HistoryBytes int
}

// Memory is a [Store] in memory, and the core of stores that add a [Journal] to it. It
// reads from a [Mirror] and assigns the revisions itself, without gaps.
type Memory struct {
	mirror  *Mirror
	commits commits // used with a journal only

	// Guarded by the lock of the mirror.
	failed  error // why no further write is acknowledged
	trouble error // why the last write was refused, although the next may succeed
}

// NewMemory returns a volatile store.
func NewMemory(o MemoryOptions) *Memory { return &Memory{mirror: NewMirror(o)} }

// Latest implements [Viewer].
func (m *Memory) Latest() View { return m.mirror.Latest() }

// Get implements [Viewer].
func (m *Memory) Get(key Key) *Record { return m.mirror.Get(key) }

// LastModified implements [Viewer].
func (m *Memory) LastModified(buckets ...string) Revision { return m.mirror.LastModified(buckets...) }

// View implements [Viewer].
func (m *Memory) View(_ context.Context, at Revision) (View, error) { return m.mirror.View(at) }

// Sync implements [Viewer]: no other process writes.
func (m *Memory) Sync(context.Context, time.Duration) error { return nil }

// Watch implements [Watcher].
func (m *Memory) Watch(r Range, after Revision) (Cursor, error) { return m.mirror.Watch(r, after) }

// Compact implements [Keeper].
func (m *Memory) Compact(_ context.Context, below Revision) error { return m.mirror.Compact(below) }

// Commit implements [Committer].
func (m *Memory) Commit(ctx context.Context, w Write) (*Record, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.commits.journal != nil {
		return m.commits.commit(ctx, m, w)
	}
	state := m.mirror
	state.mu.Lock()
	defer state.mu.Unlock()
	if state.closed {
		return nil, ErrClosed
	}
	if err := w.While.check(state.records.get); err != nil {
		return nil, err
	}
	e, err := w.event(state.records.get(w.Key), state.revision+1)
	if err != nil {
		return nil, err
	}
	state.apply([]Event{e}, time.Now())
	return e.Record, nil
}

// check returns an error unless the condition holds in the state that get reads.
func (c *Condition) check(get func(Key) *Record) error {
	if *c == (Condition{}) {
		return nil
	}
	switch current := get(c.Key); {
	case current == nil:
		return fmt.Errorf("%w: %s does not exist", ErrUnmet, c.Key)
	case current.Modified != c.At:
		return fmt.Errorf("%w: %s is at revision %d, not at %d", ErrUnmet, c.Key, current.Modified, c.At)
	}
	return nil
}

// Validate returns an error that is [ErrInvalid] for a write that no state of a store
// would accept.
func (w *Write) Validate() error {
	switch {
	case w.Key.Bucket == "" || w.Key.Name == "":
		return fmt.Errorf("%w: key %q needs a bucket and a name", ErrInvalid, w.Key)
	case len(w.Key.Bucket) > MaxKey || len(w.Key.Name) > MaxKey:
		return fmt.Errorf("%w: the bucket or name of key %.64q... is longer than %d bytes", ErrInvalid, w.Key, MaxKey)
	case len(w.Value) > MaxValue:
		return fmt.Errorf("%w: the value of %s has %d bytes, more than %d", ErrInvalid, w.Key, len(w.Value), MaxValue)
	case w.Stamp < 0 || w.Stamp > len(w.Value):
		return fmt.Errorf("%w: stamp %d of %s lies outside of its %d bytes", ErrInvalid, w.Stamp, w.Key, len(w.Value))
	case w.Expect < AnyRevision:
		return fmt.Errorf("%w: %s expects revision %d", ErrInvalid, w.Key, w.Expect)
	case w.Value == nil && w.Expect == Absent:
		return fmt.Errorf("%w: deleting %s expects it to be absent", ErrInvalid, w.Key)
	}
	return nil
}

// event computes the event of the write on the current version of its key, or the conflict
// with it.
func (w *Write) event(current *Record, rev Revision) (Event, error) {
	holds := true
	switch {
	case w.Expect == Absent:
		holds = current == nil
	case w.Expect > 0:
		holds = current != nil && current.Modified == w.Expect
	case w.Value == nil:
		holds = current != nil
	}
	if !holds {
		return Event{}, &ConflictError{Key: w.Key, Expect: w.Expect, Current: current}
	}
	return change(current, Change{Revision: rev, Key: w.Key, Value: w.Stamped(rev), Stamp: w.Stamp}), nil
}

// change computes the event of a change whose value is stamped already.
func change(current *Record, c Change) Event {
	rec := &Record{Key: c.Key, Value: c.Value, Created: c.Revision, Modified: c.Revision, Stamp: c.Stamp}
	if current != nil {
		rec.Key, rec.Created = current.Key, current.Created
	} else {
		// The caller's strings may share memory with a large one.
		rec.Key.Name = strings.Clone(c.Key.Name)
	}
	if c.Value == nil {
		rec.Stamp = current.Stamp
		rec.Value = stamp(current.Value, current.Stamp, digits(current.Modified), c.Revision)
	}
	return Event{Record: rec, Previous: current, Deleted: c.Value == nil}
}

// digits counts the decimal digits of a revision.
func digits(rev Revision) int {
	n := 1
	for ; rev >= 10; rev /= 10 {
		n++
	}
	return n
}

// stamped reports whether a value can have the digits of a revision at an offset.
func stamped(value []byte, offset int, rev Revision) bool {
	return offset == 0 || offset+digits(rev) <= len(value)
}

// Stamped returns the value of a write with the digits of the revision that it got: for
// stores that keep values without them, because they do not know the revision before.
func (w *Write) Stamped(rev Revision) []byte { return stamp(w.Value, w.Stamp, 0, rev) }

// Unstamped returns the value of a record without the digits of its revision: what
// [Write.Value] was, with [Record.Stamp].
func (r *Record) Unstamped() []byte {
	if r.Stamp == 0 {
		return r.Value
	}
	out := make([]byte, 0, len(r.Value))
	out = append(out, r.Value[:r.Stamp]...)
	return append(out, r.Value[r.Stamp+digits(r.Modified):]...)
}

// stamp returns value with old bytes at an offset replaced by the digits of a revision;
// with offset 0 it returns value unchanged.
func stamp(value []byte, offset, old int, rev Revision) []byte {
	if offset == 0 || value == nil {
		return value
	}
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], int64(rev), 10)
	out := make([]byte, len(value)-old+len(digits))
	copy(out, value[:offset])
	copy(out[offset:], digits)
	copy(out[offset+len(digits):], value[offset+old:])
	return out
}

// Fork implements [Forker].
func (m *Memory) Fork() Store {
	return NewMemory(MemoryOptions{From: m.Latest(), HistoryAge: m.mirror.maxAge, HistoryBytes: m.mirror.maxBytes})
}

// Health implements [Keeper].
func (m *Memory) Health() error {
	m.mirror.mu.RLock()
	defer m.mirror.mu.RUnlock()
	switch {
	case m.mirror.closed:
		return ErrClosed
	case m.failed != nil:
		return m.failed
	}
	return m.trouble
}

// Close implements [Keeper].
func (m *Memory) Close() error { return m.commits.close(m.mirror.Close) }
