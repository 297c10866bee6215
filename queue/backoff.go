// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync"
	"time"
)

// Defaults of the back-off.
const (
	DefaultBackoffBase = 5 * time.Millisecond
	DefaultBackoffCap  = 5 * time.Minute
)

// Backoff returns how long a key waits after its n-th failure in a row; n
// starts at 1. It must be safe for concurrent use.
type Backoff func(n int) time.Duration

// Exponential waits base after the first failure and twice as long after each
// further one, at most limit. Zero values mean [DefaultBackoffBase] and
// [DefaultBackoffCap].
func Exponential(base, limit time.Duration) Backoff {
	if base <= 0 {
		base = DefaultBackoffBase
	}
	if limit <= 0 {
		limit = DefaultBackoffCap
	}
	return func(n int) time.Duration {
		d := base
		for ; n > 1 && d < limit; n-- {
			d *= 2
		}
		return min(d, limit)
	}
}

// Limiter says how long keys wait after failures. Its methods are called by several
// workers at once, outside of the queue's lock. A TypedRateLimiter of client-go's
// workqueue is one.
type Limiter[K comparable] interface {
	// When returns how long key waits after another failure.
	When(key K) time.Duration
	// Forget is called when key is well again, or was given up.
	Forget(key K)
}

// Bucket is a limiter of all keys together: a burst of retries goes at once, and
// then perSecond of them. perSecond must be above 0; a burst below 1 counts as 1.
func Bucket[K comparable](perSecond float64, burst int) Limiter[K] {
	interval := time.Duration(float64(time.Second) / perSecond)
	return &bucket[K]{interval: interval, slack: time.Duration(max(burst, 1)) * interval}
}

type bucket[K comparable] struct {
	interval, slack time.Duration

	mu sync.Mutex
	// spent is when all that was given out has been earned.
	spent time.Time
}

// When implements Limiter.
func (b *bucket[K]) When(K) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.spent.Before(now) {
		b.spent = now
	}
	b.spent = b.spent.Add(b.interval)
	return max(b.spent.Sub(now)-b.slack, 0)
}

// Forget implements Limiter: what was given out stays so.
func (b *bucket[K]) Forget(K) {}
