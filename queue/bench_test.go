// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"testing"

	"k8s.io/client-go/util/workqueue"

	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

type name struct{ namespace, name string }

// BenchmarkAddGetDone is one trip of a key through the queue, with a priority
// and a cause; beside it stands the plain work queue of client-go, which has
// neither.
func BenchmarkAddGetDone(b *testing.B) {
	for _, waiting := range []int{0, 10_000} {
		keys := make([]name, waiting+1)
		for i := range keys {
			keys[i] = name{"default", fmt.Sprint("object-", i)}
		}
		cause := trace.Cause{Type: trace.Updated, Object: trace.Object{Kind: "Pod", Namespace: "default", Name: "web-1"}, Revision: "44", Changed: "status.phase"}
		b.Run(fmt.Sprintf("queue/waiting=%d", waiting), func(b *testing.B) {
			q := queue.New(queue.Options[name]{})
			for i, k := range keys[1:] {
				q.Add(k, queue.AddOptions{Priority: i % 2 * queue.LowPriority, Cause: cause})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q.Add(keys[i%len(keys)], queue.AddOptions{Priority: i % 2 * queue.LowPriority, Cause: cause})
				item, _ := q.Get()
				q.Forget(item.Key)
				q.Done(item.Key)
			}
		})
		b.Run(fmt.Sprintf("clientgo/waiting=%d", waiting), func(b *testing.B) {
			q := workqueue.NewTyped[name]()
			for _, k := range keys[1:] {
				q.Add(k)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q.Add(keys[i%len(keys)])
				key, _ := q.Get()
				q.Done(key)
			}
			q.ShutDown()
		})
	}
}

// BenchmarkContended has ten workers and one producer.
func BenchmarkContended(b *testing.B) {
	keys := make([]name, 1000)
	for i := range keys {
		keys[i] = name{"default", fmt.Sprint("object-", i)}
	}
	q := queue.New(queue.Options[name]{})
	ended := make(chan struct{})
	for range 10 {
		go func() {
			for item, ok := q.Get(); ok; item, ok = q.Get() {
				q.Done(item.Key)
			}
			ended <- struct{}{}
		}()
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.Add(keys[i%len(keys)], queue.AddOptions{})
	}
	q.Close()
	for range 10 {
		<-ended
	}
}
