// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/queue/clientgo"
)

func TestTheWrappedQueueBehavesAsClientGosDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := clientgo.Wrap(queue.New(queue.Options[string]{}))
		q.Add("a")
		q.Add("a")
		q.AddAfter("later", time.Second)
		if q.Len() != 1 {
			t.Errorf("length %d", q.Len())
		}
		key, shutdown := q.Get()
		if key != "a" || shutdown {
			t.Error(key, shutdown)
		}
		q.AddRateLimited("a")
		if q.NumRequeues("a") != 1 {
			t.Error(q.NumRequeues("a"))
		}
		q.Done("a")
		if key, _ = q.Get(); key != "a" {
			t.Error(key)
		}
		q.Forget("a")
		q.Done("a")
		if key, _ = q.Get(); key != "later" {
			t.Error(key)
		}
		q.Add("rest")
		q.ShutDown()
		q.Add("refused")
		if key, shutdown = q.Get(); key != "rest" || shutdown || !q.ShuttingDown() {
			t.Error(key, shutdown)
		}
		go func() {
			q.Done("later")
			q.Done("rest")
		}()
		q.ShutDownWithDrain()
		if _, shutdown = q.Get(); !shutdown {
			t.Error("the queue goes on after its end")
		}
	})
}
