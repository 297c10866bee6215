// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

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
