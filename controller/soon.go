// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// soonLimit is the delay from which on a request that asked to come back counts
// as at rest: what comes back sooner is at work, or in a loop.
const soonLimit = time.Second

// soon holds the requests that asked to come back before soonLimit, each with how
// many times in a row: those that wait for their next attempt, and those whose next
// attempt runs.
type soon[K comparable] struct {
	mu      sync.Mutex
	waiting map[K]comeback
	running map[K]comeback
	empty   chan struct{} // closed when nothing waits; nil while no caller waits
}

type comeback struct {
	after time.Duration
	times int
}

// begin notes that the next attempt of a request begins.
func (s *soon[K]) begin(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.waiting[key]
	if !ok {
		return
	}
	delete(s.waiting, key)
	if s.running == nil {
		s.running = map[K]comeback{}
	}
	s.running[key] = before
	if s.empty != nil && len(s.waiting) == 0 {
		close(s.empty)
		s.empty = nil
	}
}

// end notes how an attempt ended.
func (s *soon[K]) end(key K, result Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.running[key]
	delete(s.running, key)
	after, ok := result.Delay()
	if err != nil || !ok || after >= soonLimit {
		return
	}
	if s.waiting == nil {
		s.waiting = map[K]comeback{}
	}
	s.waiting[key] = comeback{after, before.times + 1}
}

// idle reports whether nothing waits; if something does it waits until that is
// not so for a moment. Its error is the cause of the end of ctx.
func (s *soon[K]) idle(ctx context.Context) (bool, error) {
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

// explain adds to an error which request has come back most often in a row, if any has.
func (s *soon[K]) explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var key K
	var most comeback
	for _, requests := range []map[K]comeback{s.waiting, s.running} {
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
		err, key, most.times, most.after, soonLimit)
}
