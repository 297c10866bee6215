// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// A worker gets keys until the queue is closed, tells how each ended, and is
// done with it.
func Example() {
	q := queue.New(queue.Options[string]{
		Backoff: queue.Exponential(time.Millisecond, time.Second), MaxRetries: 2,
		GaveUp: func(key string, failures int) { fmt.Println("gave up", key, "after", failures) },
	})
	q.Add("broken", queue.AddOptions{})
	q.Add("fine", queue.AddOptions{Priority: 1, Cause: trace.Cause{Type: trace.Updated, Object: trace.Object{Kind: "Pod", Name: "p"}}})
	work := func(item queue.Item[string]) error {
		for c := range item.Causes.All() {
			fmt.Printf("%s: %v\n", item.Key, c)
		}
		if item.Key == "broken" {
			return errors.New("no luck")
		}
		return nil
	}
	for range 4 {
		item, ok := q.Get()
		if !ok {
			break
		}
		if err := work(item); err != nil {
			q.Retry(item.Key, queue.AddOptions{Priority: item.Priority})
		} else {
			q.Forget(item.Key)
		}
		q.Done(item.Key)
	}
	q.Close()
	// Output:
	// fine: updated Pod p
	// broken: unknown
	// broken: retried
	// broken: retried
	// gave up broken after 3
}
