// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bounded is [context.WithDeadline] for requests, most of which end before anything
// waits for them: it creates the timer and follows its parent only when Done is called.
// If both the deadline has passed and the parent is done when it is first looked at, it
// does not know which came first.
type Bounded struct {
	context.Context // the parent
	deadline        time.Time

	mu      sync.Mutex // for making strict
	strict  atomic.Pointer[strict]
	stopped atomic.Bool
}

// strict is a context of package context, and its cancel function.
type strict struct {
	context.Context
	cancel context.CancelFunc
}

var _ context.Context = (*Bounded)(nil)

// Within returns a context that ends after limit, and is ended by [Bounded.Stop].
func Within(parent context.Context, limit time.Duration) *Bounded {
	return &Bounded{Context: parent, deadline: time.Now().Add(limit)}
}

// Stop ends the context, as its [context.CancelFunc] would.
func (c *Bounded) Stop() {
	c.stopped.Store(true)
	if s := c.strict.Load(); s != nil {
		s.cancel()
	}
}

// Deadline implements [context.Context].
func (c *Bounded) Deadline() (time.Time, bool) {
	if earlier, ok := c.Context.Deadline(); ok && earlier.Before(c.deadline) {
		return earlier, true
	}
	return c.deadline, true
}

// Done implements [context.Context].
func (c *Bounded) Done() <-chan struct{} { return c.make().Done() }

// Err implements [context.Context].
func (c *Bounded) Err() error {
	s := c.strict.Load()
	if s == nil {
		if !c.stopped.Load() && c.Context.Err() == nil && time.Now().Before(c.deadline) {
			return nil
		}
		s = c.make()
	}
	return s.Err()
}

// Value implements [context.Context]. Derived contexts look up their parent's
// cancellation with it.
func (c *Bounded) Value(key any) any {
	if s := c.strict.Load(); s != nil {
		return s.Value(key)
	}
	return c.Context.Value(key)
}

func (c *Bounded) make() *strict {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.strict.Load()
	if s == nil {
		s = &strict{}
		if c.stopped.Load() { // also after the deadline
			s.Context, s.cancel = context.WithCancel(c.Context)
		} else {
			s.Context, s.cancel = context.WithDeadline(c.Context, c.deadline)
		}
		c.strict.Store(s)
		if c.stopped.Load() {
			s.cancel()
		}
	}
	return s
}
