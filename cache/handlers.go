// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"sync"

	"github.com/steer-dev/steer/cache/internal/form"
)

// changes are handlers to add and to remove. Handlers add and remove handlers of the
// informer that calls them, so a change does not wait for commit: the holder of commit
// makes the changes that have come meanwhile before letting go of it.
type changes struct {
	mu      sync.Mutex
	waiting []func()
}

func (c *changes) put(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, change)
}

func (c *changes) take() []func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.waiting
	c.waiting = nil
	return out
}

func (c *changes) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) == 0
}

// letGo makes the changes of handlers that wait and unlocks commit. What comes after
// the last look is made by the next holder of commit, or here.
func (s *shared) letGo() {
	for {
		for _, change := range s.changes.take() {
			change()
		}
		s.commit.Unlock()
		if s.changes.none() || !s.commit.TryLock() {
			return
		}
	}
}

// change makes a change of the handlers under commit: now, or, when another goroutine has
// commit, as soon as they let go of it.
func (s *shared) change(change func()) {
	s.changes.put(change)
	if s.commit.TryLock() {
		s.letGo()
	}
}

// add registers r and shows it what is there.
func (s *shared) add(r *registration) {
	s.change(func() {
		defer close(r.shown)
		if r.isRemoved() {
			return
		}
		for _, obj := range s.store.All() {
			r.call(Event{Type: Added, Object: form.Whole(obj), Initial: true})
		}
		s.setHandlers(append(slices.Clone(s.registered()), r))
	})
}

// remove takes r out.
func (s *shared) remove(r *registration) {
	s.change(func() {
		s.setHandlers(slices.DeleteFunc(slices.Clone(s.registered()), func(h *registration) bool { return h == r }))
	})
}

func (s *shared) registered() []*registration {
	if handlers := s.handlers.Load(); handlers != nil {
		return *handlers
	}
	return nil
}

// setHandlers replaces the handlers; commit is held.
func (s *shared) setHandlers(handlers []*registration) { s.handlers.Store(&handlers) }
