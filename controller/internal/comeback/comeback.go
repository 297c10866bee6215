// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package comeback knows which requests of a controller have asked to come back soon, so
// that waiting for the controller to be idle can wait for them, and name the one that never
// ends. It is short because it knows nothing of attempts.
package comeback

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Limit is the delay from which on a request that asked to come back counts
// as at rest: what comes back sooner is at work, or in a loop.
const Limit = time.Second

// Requests holds the requests that asked to come back before Limit, each with how
// many times in a row: those that wait for their next attempt, and those whose next
// attempt runs.
type Requests[K comparable] struct {
	mu      sync.Mutex
	waiting map[K]again
	running map[K]again
	empty   chan struct{} // closed when nothing waits; nil while no caller waits
}

type again struct {
	after time.Duration
	times int
}

// Begin notes that the next attempt of a request begins.
func (s *Requests[K]) Begin(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.waiting[key]
	if !ok {
		return
	}
	delete(s.waiting, key)
	if s.running == nil {
		s.running = map[K]again{}
	}
	s.running[key] = before
	if s.empty != nil && len(s.waiting) == 0 {
		close(s.empty)
		s.empty = nil
	}
}

// End notes that an attempt has ended, and whether the request is to come back after a delay.
func (s *Requests[K]) End(key K, after time.Duration, returns bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.running[key]
	delete(s.running, key)
	if !returns || after >= Limit {
		return
	}
	if s.waiting == nil {
		s.waiting = map[K]again{}
	}
	s.waiting[key] = again{after, before.times + 1}
}

// Idle reports whether nothing waits; if something does it waits until that is
// not so for a moment. Its error is the cause of the end of ctx.
func (s *Requests[K]) Idle(ctx context.Context) (bool, error) {
	s.mu.Lock()
	if len(s.waiting) == 0 {
		s.mu.Unlock()
		return true, nil
	}
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.mu.Unlock()
	select {
	case <-empty:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// Explain adds to an error which request has come back most often in a row, if any has.
func (s *Requests[K]) Explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var key K
	var most again
	for _, requests := range []map[K]again{s.waiting, s.running} {
		for k, c := range requests {
			if c.times > most.times {
				key, most = k, c
			}
		}
	}
	if most.times == 0 {
		return err
	}
	return fmt.Errorf("%w: %v has asked %d times in a row to come back, at last after %v: return Wait and let an event tell, or a delay of %v and more",
		err, key, most.times, most.after, Limit)
}
