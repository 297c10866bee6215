// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clientgo presents a queue as a work queue of client-go, for code that
// is written against that interface. It is a package of its own so that an
// operator links client-go's work queue only when it needs it.
package clientgo

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/steer-dev/steer/queue"
)

// Wrap returns q as a rate-limiting work queue of client-go. Both may be used at
// the same time. In one point the queue differs from client-go's own: there is
// one pending run per key, so an Add also settles an AddAfter whose time has
// not come.
func Wrap[K comparable](q *queue.Queue[K]) workqueue.TypedRateLimitingInterface[K] {
	return wrapped[K]{q}
}

type wrapped[K comparable] struct{ q *queue.Queue[K] }

func (w wrapped[K]) Add(key K)                       { w.q.Add(key, queue.AddOptions{}) }
func (w wrapped[K]) AddAfter(key K, d time.Duration) { w.q.Add(key, queue.AddOptions{After: d}) }
func (w wrapped[K]) AddRateLimited(key K)            { w.q.Retry(key, queue.AddOptions{}) }
func (w wrapped[K]) Forget(key K)                    { w.q.Forget(key) }
func (w wrapped[K]) NumRequeues(key K) int           { return w.q.Failures(key) }
func (w wrapped[K]) Len() int                        { return w.q.Len() }
func (w wrapped[K]) Done(key K)                      { w.q.Done(key) }
func (w wrapped[K]) ShuttingDown() bool              { return w.q.Closed() }
func (w wrapped[K]) ShutDownWithDrain()              { _ = w.q.Drain(context.Background()) }

func (w wrapped[K]) Get() (K, bool) {
	item, ok := w.q.Get()
	return item.Key, !ok
}

// ShutDown refuses further adds and does not wait: what is ready may still be
// got.
func (w wrapped[K]) ShutDown() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.q.Drain(ctx)
}
