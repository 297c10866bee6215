// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// Change is one committed write as a [Journal] keeps it and a [Mirror] gets it.
type Change struct {
	Revision Revision
	Time     time.Time
	Key      Key
	// Value is the stamped value; nil is a deletion.
	Value []byte
	// Stamp is the offset of the digits of Revision in Value; 0 means none.
	Stamp int
}

// Journal makes the writes of a [Memory] store durable.
type Journal interface {
	// Append makes changes durable, all of them or none, before it returns. Their
	// revisions follow those of the call before. It is called by one goroutine at
	// a time and not after Close. An error that is [ErrFull] promises that
	// nothing was kept and the next call may succeed; any other error means that
	// the outcome is unknown, and Append is never called again.
	Append(changes []Change) error
	// Close releases the journal after the last Append.
	Close() error
}

// NewJournaled returns a store whose writes are durable in a journal. past yields the
// changes in the journal beyond the revision of o.From, in order; they become the
// history.
func NewJournaled(j Journal, past iter.Seq2[Change, error], o MemoryOptions) (*Memory, error) {
	m := NewMemory(o)
	for c, err := range past {
		if err != nil {
			return nil, err
		}
		if c.Revision != m.mirror.revision+1 {
			return nil, &CorruptError{File: "the journal", Reason: fmt.Sprintf("revision %d is continued by revision %d of %q, which does not follow", m.mirror.revision, c.Revision, c.Key)}
		}
		if err := m.mirror.Apply(c); err != nil {
			return nil, &CorruptError{File: "the journal", Reason: fmt.Sprintf("revision %d is continued by what does not follow: %v", m.mirror.revision, err)}
		}
	}
	m.commits.journal = j
	return m, nil
}

// maxGroup bounds the bytes of one group of writes.
const maxGroup = 4 << 20

// commits is the ordered path of a store with a journal: writes that arrive while a
// group is being made durable form the next group. It needs no goroutine: the writer at
// the head of the queue leads the group for all waiting writers, then hands the lead to
// the next one.
type commits struct {
	journal Journal

	mu      sync.Mutex
	waiting []*commit
	leading bool // a writer leads a group
	closed  bool
	idle    chan struct{} // closed when the last lead ends after closed
	closing sync.Once
	err     error // of closing
}

// commit is one write in progress. Its state is guarded by commits.mu.
type commit struct {
	write  Write
	state  commitState
	signal chan struct{} // signalled once when waiting ends
	record *Record
	err    error
}

type commitState int

const (
	// commitWaiting: in the queue; it may still be withdrawn.
	commitWaiting commitState = iota
	// commitLeading: out of the queue, at the head of the group it leads.
	commitLeading
	// commitFollowing: in a group that another writer leads.
	commitFollowing
	// commitDone: record and err are set.
	commitDone
)

// commit passes one write through the ordered path.
func (cs *commits) commit(ctx context.Context, m *Memory, w Write) (*Record, error) {
	c := &commit{write: w}
	cs.mu.Lock()
	if cs.closed {
		cs.mu.Unlock()
		return nil, ErrClosed
	}
	if cs.leading {
		c.signal = make(chan struct{}, 1)
		cs.waiting = append(cs.waiting, c)
		cs.mu.Unlock()
		if err := cs.wait(ctx, c); err != nil {
			return nil, err
		}
	} else {
		cs.leading = true
		c.state = commitLeading
		cs.mu.Unlock()
	}
	if c.state == commitLeading {
		cs.lead(m, c)
	}
	return c.record, c.err
}

// wait returns when the write is done or has to lead, or fails if ctx ends before. A
// write that is withdrawn from the queue has no effect.
func (cs *commits) wait(ctx context.Context, c *commit) error {
	select {
	case <-c.signal:
		return nil
	case <-ctx.Done():
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch c.state {
	case commitWaiting:
		for i, other := range cs.waiting {
			if other == c {
				cs.waiting = append(cs.waiting[:i], cs.waiting[i+1:]...)
				break
			}
		}
		return ctx.Err()
	case commitFollowing:
		return ctx.Err()
	}
	return nil // leading or done: this writer finishes it
}

// lead commits a group that begins with c and hands the lead on.
func (cs *commits) lead(m *Memory, c *commit) {
	cs.mu.Lock()
	group, size := []*commit{c}, c.write.size()
	for len(cs.waiting) > 0 && size < maxGroup {
		next := cs.waiting[0]
		cs.waiting = cs.waiting[1:]
		next.state = commitFollowing
		group = append(group, next)
		size += next.write.size()
	}
	cs.mu.Unlock()

	m.commitGroup(group)

	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range group {
		c.state = commitDone
	}
	for _, follower := range group[1:] {
		follower.signal <- struct{}{}
	}
	if len(cs.waiting) > 0 {
		next := cs.waiting[0]
		cs.waiting = cs.waiting[1:]
		next.state = commitLeading
		next.signal <- struct{}{}
		return
	}
	cs.leading = false
	if cs.closed {
		close(cs.idle)
	}
}

// size is approximately how many bytes of a group a write takes.
func (w *Write) size() int { return len(w.Key.Bucket) + len(w.Key.Name) + len(w.Value) }

// close lets the waiting writes finish, closes the journal and then calls shut.
func (cs *commits) close(shut func()) error {
	cs.closing.Do(func() {
		cs.mu.Lock()
		cs.closed = true
		cs.idle = make(chan struct{})
		if !cs.leading {
			close(cs.idle)
		}
		cs.mu.Unlock()
		<-cs.idle
		if cs.journal != nil {
			cs.err = cs.journal.Close()
		}
		shut()
	})
	return cs.err
}

// commitGroup evaluates writes one after the other, each on the outcome of those before
// it, makes them durable together and applies them. One group is in progress at a time;
// none of its writes is visible before it is durable.
func (m *Memory) commitGroup(group []*commit) {
	now := time.Now()
	events, err := m.evaluate(group)
	if err == nil && len(events) > 0 {
		changes := make([]Change, len(events))
		for i, e := range events {
			changes[i] = Change{Revision: e.Record.Modified, Time: now, Key: e.Record.Key, Value: e.Record.Value, Stamp: e.Record.Stamp}
			if e.Deleted {
				changes[i].Value, changes[i].Stamp = nil, 0
			}
		}
		err = m.commits.journal.Append(changes)
	}
	m.mirror.mu.Lock()
	defer m.mirror.mu.Unlock()
	if err != nil {
		if !errors.Is(err, ErrFull) && m.failed == nil {
			err = fmt.Errorf("%w: %w", ErrPoisoned, err)
			m.failed = err
		}
		m.trouble = err
		for _, c := range group {
			c.record, c.err = nil, err
		}
		return
	}
	if len(events) > 0 {
		m.trouble = nil
	}
	for i := range events {
		m.mirror.apply(events[i:i+1], now)
	}
}

// evaluate computes the events of a group and sets the outcomes of its writes.
func (m *Memory) evaluate(group []*commit) ([]Event, error) {
	m.mirror.mu.RLock()
	defer m.mirror.mu.RUnlock()
	if m.failed != nil {
		return nil, m.failed
	}
	var (
		events  = make([]Event, 0, len(group))
		pending map[Key]*Record // the outcomes of the group so far
	)
	latest := func(key Key) *Record {
		if rec, ok := pending[key]; ok {
			return rec
		}
		return m.mirror.records.get(key)
	}
	for _, c := range group {
		if err := c.write.While.check(latest); err != nil {
			c.err = err
			continue
		}
		e, err := c.write.event(latest(c.write.Key), m.mirror.revision+Revision(len(events))+1)
		if err != nil {
			c.err = err
			continue
		}
		events = append(events, e)
		c.record = e.Record
		if len(group) > 1 {
			if pending == nil {
				pending = make(map[Key]*Record, len(group))
			}
			pending[c.write.Key] = e.Record
			if e.Deleted {
				pending[c.write.Key] = nil
			}
		}
	}
	return events, nil
}
