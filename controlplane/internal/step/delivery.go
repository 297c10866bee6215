// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"sync"
	"time"
)

// senders is how many requests of one controller can be under way at once, as the
// workers of most controllers of kube-controller-manager (--concurrent-*-syncs).
const senders = 5

// delivery is the requests of one step on their way. It has no goroutine before it
// starts and after it ends, and at most [senders] in between.
type delivery struct {
	requests []Request
	// errs are the outcomes, by position; to be read when done is closed.
	errs []error
	done chan struct{}

	send  Sender
	after func() // called when a delivery ends that the caller of start did not wait for

	mu      sync.Mutex
	outbox  outbox
	working int // senders
}

func newDelivery(requests []Request, send Sender, after func()) *delivery {
	return &delivery{
		requests: requests, errs: make([]error, len(requests)), done: make(chan struct{}),
		send: send, after: after, outbox: outbox{requests: requests},
	}
}

// start sends the requests one after the other. If that takes longer than patience, it
// lets more senders take what is left, and returns false.
func (d *delivery) start(ctx context.Context, patience time.Duration) bool {
	d.working = 1
	go d.work(ctx, true)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-d.done:
		return true
	case <-timer.C:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.working == 0 {
		return true
	}
	more := min(senders-1, d.outbox.spread())
	d.working += more
	for range more {
		go d.work(ctx, false)
	}
	return false
}

// work is one sender.
func (d *delivery) work(ctx context.Context, first bool) {
	for {
		d.mu.Lock()
		lane := d.outbox.take(first)
		if len(lane) == 0 {
			break
		}
		d.mu.Unlock()
		for _, i := range lane {
			if d.errs[i] = ctx.Err(); d.errs[i] == nil {
				d.errs[i] = d.send(ctx, d.requests[i])
			}
		}
	}
	defer d.mu.Unlock()
	if d.working--; d.working > 0 {
		return
	}
	close(d.done)
	if d.outbox.isSpread {
		d.after()
	}
}

// ended reports whether a delivery has ended; one that is nil has not begun.
func (d *delivery) ended() bool {
	if d == nil {
		return false
	}
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}
