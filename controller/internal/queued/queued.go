// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queued names what waits in the queue of a controller as its records do.
package queued

import (
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// Of lists what waits in a queue, at most so many requests of each state. describe names a key.
func Of[K comparable](controller string, q *queue.Queue[K], most int, describe func(K) (trace.Object, string)) trace.Queued {
	named := func(keys []queue.Waiting[K]) (out []trace.Waiting) {
		for _, k := range keys {
			object, request := describe(k.Key)
			out = append(out, trace.Waiting{Object: object, Request: request, At: k.At, Failures: k.Failures})
		}
		return out
	}
	p := q.Pending(most)
	return trace.Queued{
		Controller: controller, Ready: named(p.Ready), BackingOff: named(p.BackingOff), Due: named(p.Delayed),
		AllReady: p.AllReady, AllBackingOff: p.AllBackingOff, AllDue: p.AllDelayed,
	}
}
