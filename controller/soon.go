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
// many times in a row. A request belongs to it from the end of the attempt that
// asked until the next one begins.
type soon[K comparable] struct {
	mu      sync.Mutex
	waiting map[K]comeback
	empty   chan struct{} // closed when nothing waits; nil while no caller waits
}

type comeback struct {
	after time.Duration
	times int
}

// begin takes a request out, because its next attempt begins, and returns how
// many attempts in a row have asked to come back.
func (s *soon[K]) begin(key K) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	times = s.waiting[key].times
	delete(s.waiting, key)
	s.check()
	return times
}

// end notes how an attempt ended.
func (s *soon[K]) end(key K, result Result, times int) {
	after, ok := result.Delay()
	if !ok || after >= soonLimit {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[K]comeback{}
	}
	s.waiting[key] = comeback{after, times + 1}
}

func (s *soon[K]) check() {
	if s.empty != nil && len(s.waiting) == 0 {
		close(s.empty)
		s.empty = nil
	}
}

// idle reports whether nothing waits; if something does it waits until that is
// not so for a moment. When ctx ends first the error names who comes back.
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
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var worst K
	for key, c := range s.waiting {
		if c.times >= s.waiting[worst].times {
			worst = key
		}
	}
	c := s.waiting[worst]
	return false, fmt.Errorf("%w: %v has asked %d times in a row to come back, at last after %v: return Wait and let an event tell, or a delay of %v and more",
		context.Cause(ctx), worst, c.times, c.after, soonLimit)
}
