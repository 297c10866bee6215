// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package buffer carries events to a handler on a goroutine of its own. It is short because
// it knows nothing of the events.
package buffer

import (
	"context"
	"sync"
)

// Buffer holds events until the handler has been called for them, in their order. It is safe
// for concurrent use.
type Buffer[E any] struct {
	limit   int
	merge   func(waiting []E, e E) bool
	deliver func(E)
	done    chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed sync.Cond
	events  []E
	busy    bool
	closed  bool
	// everDrained remembers that the buffer ran empty after Drained was called first.
	everDrained bool
}

// New returns a buffer that calls deliver for each event, and starts its goroutine, which ends
// with Close. While limit events wait, merge may combine a new one with one of them and report
// true; else the new one waits for room.
func New[E any](limit int, merge func(waiting []E, e E) bool, deliver func(E)) *Buffer[E] {
	b := &Buffer[E]{limit: limit, merge: merge, deliver: deliver, done: make(chan struct{})}
	b.changed.L = &b.mu
	go b.run()
	return b
}

// Put appends an event. It waits while the buffer is full.
func (b *Buffer[E]) Put(e E) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.events) >= b.limit && !b.closed {
		if b.merge(b.events, e) {
			return
		}
		b.changed.Wait()
	}
	if b.closed {
		return
	}
	b.events = append(b.events, e)
	b.changed.Broadcast()
}

func (b *Buffer[E]) run() {
	defer close(b.done)
	for {
		b.mu.Lock()
		b.busy = false
		b.changed.Broadcast()
		for len(b.events) == 0 && !b.closed {
			b.changed.Wait()
		}
		if b.closed {
			b.mu.Unlock()
			return
		}
		events := b.events
		b.events, b.busy = nil, true
		b.mu.Unlock()
		for i := range events {
			if b.isClosed() {
				break
			}
			b.deliver(events[i])
		}
	}
}

func (b *Buffer[E]) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Drained reports whether everything so far has been delivered, now or at an earlier call.
func (b *Buffer[E]) Drained() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.everDrained = b.everDrained || len(b.events) == 0 && !b.busy
	return b.everDrained
}

// WaitDrained waits until everything so far has been delivered, or the buffer is
// closed. It reports false when ctx ends first.
func (b *Buffer[E]) WaitDrained(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed && ctx.Err() == nil && (len(b.events) > 0 || b.busy) {
		b.changed.Wait()
	}
	return ctx.Err() == nil
}

// Close drops what waits. The handler is not called for another event; Done is closed when the
// call under way has returned.
func (b *Buffer[E]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}

// Done is closed when the goroutine has ended.
func (b *Buffer[E]) Done() <-chan struct{} { return b.done }
