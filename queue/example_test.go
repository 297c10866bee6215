// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
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

// A key that is added many times before a worker gets it runs once, with the causes of
// all adds.
func ExampleQueue_Add() {
	q := queue.New(queue.Options[string]{})
	defer q.Close()
	for _, pod := range []string{"web-1", "web-2", "web-2"} {
		q.Add("web", queue.AddOptions{Cause: trace.Cause{Type: trace.Deleted, Object: trace.Object{Kind: "Pod", Name: pod}}})
	}
	fmt.Println("keys:", q.Len())
	item, _ := q.Get()
	for cause := range item.Causes.All() {
		fmt.Println(item.Key, "because of", cause)
	}
	q.Done(item.Key)
	// Output:
	// keys: 1
	// web because of deleted Pod web-1
	// web because of deleted Pod web-2 x2
}

// A key never runs twice at once: added while it runs, it runs again afterwards.
func ExampleQueue_Done() {
	q := queue.New(queue.Options[string]{})
	defer q.Close()
	q.Add("web", queue.AddOptions{})
	item, _ := q.Get()
	q.Add("web", queue.AddOptions{})
	fmt.Println("running:", q.Stats().Running, "pending:", q.Len())
	q.Done(item.Key)
	item, _ = q.Get()
	fmt.Println("again:", item.Key)
	q.Done(item.Key)
	// Output:
	// running: 1 pending: 1
	// again: web
}

// Keys of a higher priority come first. An operator's initial list has queue.LowPriority.
func ExampleAddOptions() {
	q := queue.New(queue.Options[string]{})
	defer q.Close()
	q.Add("old", queue.AddOptions{Priority: queue.LowPriority})
	q.Add("changed", queue.AddOptions{})
	q.Add("urgent", queue.AddOptions{Priority: 10})
	for range 3 {
		item, _ := q.Get()
		fmt.Println(item.Key, item.Priority)
		q.Done(item.Key)
	}
	// Output:
	// urgent 10
	// changed 0
	// old -100
}

// A failure is retried with a growing delay until Forget.
func ExampleQueue_Retry() {
	q := queue.New(queue.Options[string]{Backoff: queue.Exponential(time.Millisecond, time.Second)})
	defer q.Close()
	q.Add("web", queue.AddOptions{})
	for range 3 {
		item, _ := q.Get() // waits for the delay
		delay, again := q.Retry(item.Key, queue.AddOptions{Priority: item.Priority})
		fmt.Println("failures before:", item.Failures, "next in:", delay, again)
		q.Done(item.Key)
	}
	q.Forget("web")
	fmt.Println("failures:", q.Failures("web"))
	// Output:
	// failures before: 0 next in: 1ms true
	// failures before: 1 next in: 2ms true
	// failures before: 2 next in: 4ms true
	// failures: 0
}

func ExampleExponential() {
	backoff := queue.Exponential(100*time.Millisecond, time.Second)
	for failures := 1; failures <= 5; failures++ {
		fmt.Println(backoff(failures))
	}
	// Output:
	// 100ms
	// 200ms
	// 400ms
	// 800ms
	// 1s
}

// A bucket limits the retries of all keys together: 2 at once, then 2 in an hour.
func ExampleBucket() {
	q := queue.New(queue.Options[int]{
		Backoff: queue.Exponential(time.Microsecond, time.Microsecond),
		Limiter: queue.Bucket[int](2.0/3600, 2),
	})
	defer q.Close()
	for key := range 4 {
		q.Add(key, queue.AddOptions{})
		item, _ := q.Get()
		delay, _ := q.Retry(item.Key, queue.AddOptions{})
		q.Done(item.Key)
		fmt.Println(delay.Round(10 * time.Minute))
	}
	// Output:
	// 0s
	// 0s
	// 30m0s
	// 1h0m0s
}

// Drain closes the queue after the running keys are done.
func ExampleQueue_Drain() {
	q := queue.New(queue.Options[string]{})
	q.Add("web", queue.AddOptions{})
	item, _ := q.Get()
	q.Done(item.Key)
	err := q.Drain(context.Background())
	_, ok := q.Get()
	fmt.Println(err, ok)
	// Output: <nil> false
}
