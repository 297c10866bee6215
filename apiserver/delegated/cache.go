// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// cache remembers answers of the cluster for a while. Callers that ask the same at once
// share one request. It is safe for concurrent use.
type cache[V any] struct {
	max int // entries

	mu      sync.Mutex
	entries map[key]*entry[V]
}

// key is the hash of a question: tokens are not kept.
type key = [sha256.Size]byte

// entry is an answer, or the wait for it.
type entry[V any] struct {
	ready   chan struct{}
	value   V
	err     error
	expires time.Time // of an entry that is ready
}

func newCache[V any](limit int) *cache[V] {
	return &cache[V]{max: limit, entries: map[key]*entry[V]{}}
}

// get returns the answer that is remembered for a key, or asks for it. ask returns for how
// long its answer is valid; errors are not remembered. It runs without the deadline of the
// caller, for whom others may wait too, and bounds its time itself.
func (c *cache[V]) get(ctx context.Context, k key, ask func(context.Context) (V, time.Duration, error)) (V, error) {
	c.mu.Lock()
	e, known := c.entries[k]
	if known && e.done() && !time.Now().Before(e.expires) {
		known = false
	}
	if known {
		c.mu.Unlock()
		select {
		case <-e.ready:
			return e.value, e.err
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
	c.makeRoom()
	e = &entry[V]{ready: make(chan struct{})}
	c.entries[k] = e
	c.mu.Unlock()

	value, valid, err := ask(context.WithoutCancel(ctx))
	c.mu.Lock()
	defer c.mu.Unlock()
	e.value, e.err, e.expires = value, err, time.Now().Add(valid)
	if err != nil && c.entries[k] == e {
		delete(c.entries, k)
	}
	close(e.ready)
	return value, err
}

// makeRoom removes what has expired if the cache is full, and any entry if nothing has.
func (c *cache[V]) makeRoom() {
	if len(c.entries) < c.max {
		return
	}
	now := time.Now()
	for k, e := range c.entries {
		if e.done() && !now.Before(e.expires) {
			delete(c.entries, k)
		}
	}
	for k := range c.entries {
		if len(c.entries) < c.max {
			return
		}
		delete(c.entries, k)
	}
}

// done reports whether the answer is there; the cache is locked.
func (e *entry[V]) done() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}
