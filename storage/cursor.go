// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

const (
	// maxBatch is how many events a batch may have before its revision ends.
	maxBatch = 512
	// usualBatch is the initial capacity of a batch.
	usualBatch = 64
)

// cursor is a reader's position in the history of a [Mirror].
type cursor struct {
	mirror *Mirror
	prefix string
	bucket *bucketHistory // nil for all buckets
	topics *topics
	topic  *topic

	// seen is the revision up to which everything has been delivered.
	seen Revision
	// settled is set once the cursor was near the newest revision. One that begins far
	// behind may catch up first.
	settled bool

	closing sync.Once
	closed  chan struct{}
}

// Next implements [Cursor].
func (c *cursor) Next(ctx context.Context) (Batch, error) {
	for {
		ended := ctx.Err()
		b, wakeup, err := c.collect(ended == nil)
		if err != nil || len(b.Events) > 0 {
			return b, err
		}
		if ended != nil {
			return Batch{}, ended
		}
		select {
		case <-wakeup.fired:
			// The topic had no event before this one, so the cursor has seen everything
			// below it.
			c.seen = max(c.seen, wakeup.at-1)
		case <-c.closed:
		case <-ctx.Done():
		}
	}
}

// Poll implements [Cursor].
func (c *cursor) Poll() (Batch, error) {
	b, _, err := c.collect(false)
	return b, err
}

// collect returns the next events and, if there are none and arm is set, a wakeup for
// the next one.
func (c *cursor) collect(arm bool) (Batch, *wakeup, error) {
	m := c.mirror
	m.mu.RLock()
	defer m.mu.RUnlock()
	select {
	case <-c.closed:
		return Batch{}, nil, ErrClosed
	default:
	}
	if m.closed {
		return Batch{}, nil, ErrClosed
	}
	if c.topic.disarm() {
		c.seen = m.revision
	}
	b := Batch{Revision: m.revision}
	if c.topic.last > c.seen {
		b = c.unread()
		if err := c.lagging(b.Events); err != nil {
			return Batch{}, nil, err
		}
	}
	c.seen = b.Revision
	c.settled = c.settled || c.seen == m.revision
	if arm && len(b.Events) == 0 {
		return b, c.topic.arm(), nil
	}
	return b, nil, nil
}

// unread returns the next events of the range. A batch ends with all events of a
// revision: a reader that resumes after it has lost none.
func (c *cursor) unread() Batch {
	h := &c.mirror.history
	b := Batch{Events: make([]Event, 0, h.count(c.bucket, c.seen, usualBatch)), Revision: c.mirror.revision}
	h.next(c.bucket, c.seen, func(e *entry) bool {
		if !strings.HasPrefix(e.Record.Key.Name, c.prefix) {
			return true
		}
		if n := len(b.Events); n >= maxBatch && b.Events[n-1].Record.Modified < e.Record.Modified {
			b.Revision = b.Events[n-1].Record.Modified
			return false
		}
		b.Events = append(b.Events, e.Event)
		return true
	})
	return b
}

// lagging returns [ErrLagged] if the cursor has lost events of its topic, or is about
// to lose unread ones.
func (c *cursor) lagging(unread []Event) error {
	if c.seen < c.topic.dropped {
		return fmt.Errorf("read on after revision %d: %w: %w", c.seen, ErrLagged, ErrCompacted)
	}
	late := len(unread) > 0 && unread[0].Record.Modified <= c.mirror.history.lag
	if late && c.settled {
		return fmt.Errorf("read on after revision %d: %w", c.seen, ErrLagged)
	}
	c.settled = c.settled || !late
	return nil
}

// Close implements [Cursor].
func (c *cursor) Close() {
	c.closing.Do(func() {
		c.mirror.mu.Lock()
		defer c.mirror.mu.Unlock()
		c.topics.leave(c.topic)
		close(c.closed)
	})
}
