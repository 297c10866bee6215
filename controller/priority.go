// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/steer-dev/steer/queue"
)

// prioritize adds n to the priority of what source requests.
func prioritize[K comparable](source Source[K], n int) Source[K] {
	if n == 0 {
		return source
	}
	return prioritized[K]{source, n}
}

type prioritized[K comparable] struct {
	Source[K]
	n int
}

// Start implements Source.
func (p prioritized[K]) Start(ctx context.Context, enqueue func(K, queue.AddOptions)) error {
	return p.Source.Start(ctx, func(key K, order queue.AddOptions) {
		order.Priority += p.n
		enqueue(key, order)
	})
}

// limit sets the rate limiter of a queue.
func limit[K comparable](options *queue.Options[K], s *settings[K]) error {
	switch {
	case s.rate < 0 || s.burst < 0 || s.rate == 0 && s.burst > 0:
		return fmt.Errorf("RetryRate(%v, %d): want retries per second above 0 and a burst", s.rate, s.burst)
	case s.limiter != nil && s.rate > 0:
		return errors.New("RetryRate and RateLimiter exclude each other: bound the rate in the limiter")
	case s.limiter != nil:
		options.Limiter = s.limiter
		if options.Backoff == nil {
			options.Backoff = func(int) time.Duration { return 0 }
		}
	case s.rate > 0:
		options.Limiter = queue.Bucket[K](s.rate, s.burst)
	}
	return nil
}
