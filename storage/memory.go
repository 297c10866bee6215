// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MemoryOptions configures a [Memory] store. The zero value is an empty store
// with the default history.
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
// has no goroutine and no timer: the history is trimmed by the next call that writes or
// opens an old revision, and an idle store costs a few hundred bytes in addition to its
// records.
//
// The state is a copy-on-write tree per bucket, so that a [View] or a fork takes
// constant time and shares all records. Events form one history, indexed by
// bucket; a [Cursor] is a revision in it.
type Memory struct {
	maxAge   time.Duration
	maxBytes int
	commits  commits // used with a journal only

	// latest is the view at the newest revision, if one has been opened.
	latest atomic.Pointer[view]

	// mu guards everything below. Reads of the current state share it; applying a
	// write, or copying the tree, takes it exclusively.
	mu       sync.RWMutex
	revision Revision
	records  *records
	history  history
	failed   error // why no further write is acknowledged
	trouble  error // why the last write was refused, although the next may succeed
	closed   bool
}

// NewMemory returns a volatile store.
func NewMemory(o MemoryOptions) *Memory {
	m := &Memory{
		maxAge:   cmp.Or(o.HistoryAge, 5*time.Minute),
		maxBytes: cmp.Or(o.HistoryBytes, 64<<20),
	}
	if o.From == nil {
		m.records = &records{epoch: new(epoch)}
	} else {
		m.records, m.revision = writableRecords(o.From), o.From.Revision()
	}
	m.history = newHistory(m.revision, m.maxAge, m.maxBytes)
	return m
}

// View implements [Viewer].
func (m *Memory) View(_ context.Context, at Revision) (View, error) {
	if v := m.latest.Load(); v != nil && (at == 0 || at == v.revision) {
		return v, nil
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, ErrClosed
	}
	if at == 0 || at == m.revision {
		defer m.mu.Unlock()
		return m.newest(), nil
	}
	m.history.trim(time.Now())
	if err := m.reachable(at, m.history.base); err != nil {
		m.mu.Unlock()
		return nil, fmt.Errorf("view revision %d: %w", at, err)
	}
	root, undo := m.history.rootAbove(at, m.newest())
	m.mu.Unlock()

	if root.revision == at {
		return root, nil
	}
	v := &view{revision: at, records: writableRecords(root)}
	for _, e := range slices.Backward(undo) {
		v.records.undo(e)
	}
	m.mu.Lock()
	m.history.remember(v)
	m.mu.Unlock()
	return v, nil
}

// Get implements [Viewer].
func (m *Memory) Get(_ context.Context, key Key) (*Record, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return nil, ErrClosed
	}
	return m.records.get(key), nil
}

// LastModified implements [Viewer].
func (m *Memory) LastModified(_ context.Context, buckets ...string) (Revision, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return 0, ErrClosed
	}
	newest := Revision(0)
	for _, name := range buckets {
		if f := m.history.feeds[name]; f != nil {
			newest = max(newest, f.newest())
		}
	}
	return newest, nil
}

// newest returns the view of the newest state; m.mu is held exclusively.
func (m *Memory) newest() *view {
	if v := m.latest.Load(); v != nil {
		return v
	}
	v := &view{revision: m.revision, records: m.records.copy()}
	m.latest.Store(v)
	return v
}

// reachable returns an error unless a revision has been assigned and is not below
// oldest.
func (m *Memory) reachable(at, oldest Revision) error {
	switch {
	case at < oldest:
		return ErrCompacted
	case at > m.revision:
		return ErrFuture
	}
	return nil
}

// Commit implements [Committer].
func (m *Memory) Commit(ctx context.Context, w Write) (*Record, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.commits.journal != nil {
		return m.commits.commit(ctx, m, w)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	if err := w.While.check(m.records.get); err != nil {
		return nil, err
	}
	e, err := w.event(m.records.get(w.Key), m.revision+1)
	if err != nil {
		return nil, err
	}
	m.apply(e, time.Now())
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

// apply makes the event of the next revision visible; m.mu is held exclusively.
func (m *Memory) apply(e Event, at time.Time) {
	m.latest.Store(nil)
	m.revision = e.Record.Modified
	if e.Deleted {
		m.records.remove(e.Record.Key)
	} else {
		m.records.put(e.Record)
	}
	m.history.append(e, at)
	if m.history.wantsRoot(m.revision, m.records) {
		m.history.roots = append(m.history.roots, m.newest())
	}
}

// check returns an error for a write that no state would accept.
func (w *Write) check() error {
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
	return change(current, Change{Revision: rev, Key: w.Key, Value: stamp(w.Value, w.Stamp, 0, rev), Stamp: w.Stamp}), nil
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

// Watch implements [Watcher].
func (m *Memory) Watch(r Range, after Revision) (Cursor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	m.history.trim(time.Now())
	var f *feed
	topics, last := &m.history.all, m.revision
	if r.Bucket != "" {
		f = m.history.feed(r.Bucket)
		topics, last = &f.topics, f.newest()
	}
	reach := m.history.reach(f)
	if err := m.reachable(after, reach); err != nil {
		return nil, fmt.Errorf("watch %s/%s after revision %d: %w", r.Bucket, r.Prefix, after, err)
	}
	return &cursor{
		store: m, prefix: r.Prefix, feed: f, topics: topics,
		topic: topics.join(r.Prefix, r.WakeOn, last, reach), seen: after, closed: make(chan struct{}),
	}, nil
}

// Fork implements [Forker].
func (m *Memory) Fork() Store {
	o := MemoryOptions{HistoryAge: m.maxAge, HistoryBytes: m.maxBytes}
	m.mu.Lock()
	o.From = m.newest()
	m.mu.Unlock()
	return NewMemory(o)
}

// Compact implements [Keeper].
func (m *Memory) Compact(_ context.Context, below Revision) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	if below > m.revision {
		return fmt.Errorf("compact below revision %d: %w", below, ErrFuture)
	}
	m.history.compact(below)
	return nil
}

// Health implements [Keeper].
func (m *Memory) Health() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.closed:
		return ErrClosed
	case m.failed != nil:
		return m.failed
	}
	return m.trouble
}

// Close implements [Keeper]. Views that have been opened stay readable.
func (m *Memory) Close() error {
	return m.commits.close(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.closed = true
		m.latest.Store(nil)
		m.history.wakeAll()
	})
}
