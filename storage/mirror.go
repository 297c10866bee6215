// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Mirror is the state of a store in memory with its history: what is read and watched,
// whatever makes the writes durable. [Memory] is a mirror that assigns the revisions
// itself; a store whose data other processes write as well fills one from their changes
// ([Mirror.Apply]) and waits for its own to arrive ([Mirror.Wait], [Mirror.Written]).
//
// It has no goroutine and no timer: the history is trimmed by the next call that applies
// a change or opens an old revision, and an idle mirror costs a few hundred bytes in
// addition to its records.
//
// The state is a copy-on-write tree per bucket, so that a [View] or a fork takes
// constant time and shares all records. Events form one history, indexed by
// bucket; a [Cursor] is a revision in it.
//
// All methods are safe for concurrent use.
type Mirror struct {
	maxAge   time.Duration
	maxBytes int

	// latest is the view at the newest revision, if one has been opened.
	latest atomic.Pointer[view]

	// mu guards everything below. Reads of the current state share it; applying a
	// change, or copying the tree, takes it exclusively.
	mu       sync.RWMutex
	revision Revision
	records  *records
	history  history
	waiting  []arrival // nil while nothing waits
	closed   bool
}

// arrival is a wait for a revision.
type arrival struct {
	revision Revision
	reached  chan struct{}
}

// NewMirror returns a mirror of the state that o begins with.
func NewMirror(o MemoryOptions) *Mirror {
	m := &Mirror{
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

// Apply makes changes visible. Their revisions are above the one of the mirror and do
// not decrease; those of one revision become visible at once and are not split over
// calls. It fails with [ErrInvalid], having applied nothing of the revision, if the
// changes do not follow the state of the mirror, and with [ErrClosed].
func (m *Mirror) Apply(changes ...Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Revision == changes[0].Revision {
			n++
		}
		events, err := m.events(changes[:n])
		if err != nil {
			return err
		}
		m.apply(events, changes[0].Time)
		changes = changes[n:]
	}
	return nil
}

// events computes the events of the changes of one revision.
func (m *Mirror) events(changes []Change) ([]Event, error) {
	events := make([]Event, 0, len(changes))
	for _, c := range changes {
		current := m.records.get(c.Key)
		w := Write{Key: c.Key, Value: c.Value, Stamp: c.Stamp, Expect: AnyRevision}
		switch {
		case c.Revision <= m.revision:
			return nil, fmt.Errorf("%w: revision %d of %s does not follow revision %d", ErrInvalid, c.Revision, c.Key, m.revision)
		case c.Value == nil && current == nil:
			return nil, fmt.Errorf("%w: revision %d deletes %s, which does not exist", ErrInvalid, c.Revision, c.Key)
		case w.Validate() != nil:
			return nil, w.Validate()
		case !stamped(c.Value, c.Stamp, c.Revision):
			return nil, fmt.Errorf("%w: the value of %s at revision %d is not stamped", ErrInvalid, c.Key, c.Revision)
		case slices.ContainsFunc(events, func(e Event) bool { return e.Record.Key == c.Key }):
			return nil, fmt.Errorf("%w: revision %d changes %s twice", ErrInvalid, c.Revision, c.Key)
		}
		events = append(events, change(current, c))
	}
	return events, nil
}

// apply makes the events of the next revision visible; m.mu is held exclusively.
func (m *Mirror) apply(events []Event, at time.Time) {
	m.latest.Store(nil)
	m.revision = events[0].Record.Modified
	for _, e := range events {
		if e.Deleted {
			m.records.remove(e.Record.Key)
		} else {
			m.records.put(e.Record)
		}
	}
	m.history.append(events, at)
	if m.history.wantsRoot(m.records) {
		m.history.addRoot(m.newest())
	}
	m.arrived()
}

// Advance reports that the mirror has all changes up to a revision, of which the last
// ones are none of its own. A revision that it has reached is no error.
func (m *Mirror) Advance(to Revision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || to <= m.revision {
		return
	}
	m.latest.Store(nil)
	m.revision = to
	m.arrived()
}

// Reset replaces the state by a newer one, where the changes between the two cannot be
// had. The history begins anew: the cursors that are open fail with [ErrLagged] and
// [ErrCompacted], and so do views and watches below the revision with ErrCompacted.
// Records that the mirror already has keep their pointers if the view has the same ones.
// It fails with [ErrInvalid] if the view is not newer, and with [ErrClosed].
func (m *Mirror) Reset(to View) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return ErrClosed
	case to.Revision() <= m.revision:
		return fmt.Errorf("%w: the state at revision %d does not follow revision %d", ErrInvalid, to.Revision(), m.revision)
	}
	m.latest.Store(nil)
	m.records, m.revision = writableRecords(to), to.Revision()
	m.history.reset(m.revision, to.Buckets())
	m.arrived()
	return nil
}

// arrived ends the waits for the revision; m.mu is held exclusively.
func (m *Mirror) arrived() {
	if m.waiting == nil {
		return
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(a arrival) bool {
		if a.revision > m.revision {
			return false
		}
		close(a.reached)
		return true
	})
}

// Wait returns once the mirror has all changes up to a revision. It fails if ctx ends
// before, and with [ErrClosed].
func (m *Mirror) Wait(ctx context.Context, rev Revision) error {
	m.mu.Lock()
	switch {
	case m.closed:
		m.mu.Unlock()
		return ErrClosed
	case rev <= m.revision:
		m.mu.Unlock()
		return nil
	}
	a := arrival{revision: rev, reached: make(chan struct{})}
	m.waiting = append(m.waiting, a)
	m.mu.Unlock()

	select {
	case <-a.reached:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = slices.DeleteFunc(m.waiting, func(other arrival) bool { return other.reached == a.reached })
	switch {
	case rev <= m.revision:
		return nil
	case m.closed:
		return ErrClosed
	}
	return ctx.Err()
}

// Written returns the version that a revision made of a key, for a deletion the final
// one: the record that readers and watchers have. It fails with [ErrFuture] until the
// mirror has reached the revision, and with [ErrCompacted] if the version is neither the
// current one nor in the history.
func (m *Mirror) Written(key Key, rev Revision) (*Record, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if rev > m.revision {
		return nil, fmt.Errorf("%s at revision %d: %w", key, rev, ErrFuture)
	}
	if rec := m.records.get(key); rec != nil && rec.Modified == rev {
		return rec, nil
	}
	if e := m.history.event(key, rev); e != nil {
		return e.Record, nil
	}
	return nil, fmt.Errorf("%s at revision %d: %w", key, rev, ErrCompacted)
}

// View returns the snapshot at a revision, or the newest for 0. Errors are those of
// [Viewer.View]; it waits for nothing.
func (m *Mirror) View(at Revision) (View, error) {
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

// Latest is as [Viewer] says.
func (m *Mirror) Latest() View {
	if v := m.latest.Load(); v != nil {
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newest()
}

// Get is as [Viewer] says.
func (m *Mirror) Get(key Key) *Record {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.records.get(key)
}

// LastModified is as [Viewer] says.
func (m *Mirror) LastModified(buckets ...string) Revision {
	m.mu.RLock()
	defer m.mu.RUnlock()
	newest := Revision(0)
	for _, name := range buckets {
		if f := m.history.buckets[name]; f != nil {
			newest = max(newest, f.newest())
		}
	}
	return newest
}

// newest returns the view of the newest state; m.mu is held exclusively.
func (m *Mirror) newest() *view {
	if v := m.latest.Load(); v != nil {
		return v
	}
	v := &view{revision: m.revision, records: m.records.copy()}
	m.latest.Store(v)
	return v
}

// reachable returns an error unless a revision has been reached and is not below
// oldest.
func (m *Mirror) reachable(at, oldest Revision) error {
	switch {
	case at < oldest:
		return ErrCompacted
	case at > m.revision:
		return ErrFuture
	}
	return nil
}

// Watch is as [Watcher] says.
func (m *Mirror) Watch(r Range, after Revision) (Cursor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	m.history.trim(time.Now())
	var f *bucketHistory
	topics, last := &m.history.all, m.revision
	if r.Bucket != "" {
		f = m.history.bucket(r.Bucket)
		topics, last = &f.topics, f.newest()
	}
	reach := m.history.reach(f)
	if err := m.reachable(after, reach); err != nil {
		return nil, fmt.Errorf("watch %s/%s after revision %d: %w", r.Bucket, r.Prefix, after, err)
	}
	return &cursor{
		mirror: m, prefix: r.Prefix, bucket: f, topics: topics,
		topic: topics.join(r.Prefix, r.WakeOn, last, reach), seen: after, closed: make(chan struct{}),
	}, nil
}

// Compact drops the history below a revision, as [Keeper.Compact] says.
func (m *Mirror) Compact(below Revision) error {
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

// Close ends the cursors and the waits; further changes, views and watches fail with
// [ErrClosed]. Views that have been opened stay readable. It is idempotent.
func (m *Mirror) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.closed = true
	m.history.wakeAll()
	for _, a := range m.waiting {
		close(a.reached)
	}
	m.waiting = nil
}
