// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
)

// Idle waits until no key is ready, runs, or waits for the retry of a failure.
// Keys that were added with a delay do not count: they may wait for days. A
// closed queue is idle as soon as the last run ends. When ctx ends first the
// error tells what is left.
func (q *Queue[K]) Idle(ctx context.Context) error {
	q.mu.Lock()
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.checkIdle()
	q.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		return fmt.Errorf("%w: %d requests are ready, %d run, %d wait for a retry",
			context.Cause(ctx), q.core.waiting(), len(q.core.running), q.core.retrying())
	}
}

// checkIdle wakes those who wait for an idle queue. Only the end of a run and
// the end of the queue can make it so.
func (q *Queue[K]) checkIdle() {
	if q.idle == nil || len(q.core.running) > 0 || q.core.waiting() > 0 || q.core.retrying() > 0 {
		return
	}
	close(q.idle)
	q.idle = nil
}

// retrying counts the delayed keys that have failed.
func (c *core[K]) retrying() int {
	n := 0
	for _, node := range c.delayed.nodes {
		if node.counts() && node.entry.failures > 0 {
			n++
		}
	}
	return n
}
