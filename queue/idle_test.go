// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/queue"
)

func TestIdleWaitsForRunsAndRetriesAndNotForDelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(queue.Options[string]{Backoff: queue.Exponential(time.Second, time.Second)})
		defer q.Close()
		idle := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			return q.Idle(ctx) == nil
		}
		if !idle() {
			t.Error("an empty queue is not idle")
		}
		q.Add("later", queue.AddOptions{After: time.Hour})
		if !idle() {
			t.Error("a delayed key keeps the queue from being idle")
		}
		q.Add("now", queue.AddOptions{})
		if idle() {
			t.Error("idle with a ready key")
		}
		item, _ := q.Get()
		if idle() {
			t.Error("idle with a running key")
		}
		q.Retry(item.Key, queue.AddOptions{})
		q.Done(item.Key)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := q.Idle(ctx); err == nil || !strings.Contains(err.Error(), "1 wait for a retry") {
			t.Errorf("idle with a key that failed: %v", err)
		}
		waited := make(chan error)
		go func() { waited <- q.Idle(t.Context()) }()
		item, _ = q.Get() // after the back-off
		q.Forget(item.Key)
		q.Done(item.Key)
		if err := <-waited; err != nil {
			t.Error(err)
		}
	})
}
