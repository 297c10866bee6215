// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// senders is how many requests of one pool can be under way at once, as the workers of
// most controllers of kube-controller-manager (--concurrent-*-syncs).
const senders = 5

// pool tells senders apart. A controller that plays several parts of a cluster has one for
// each: the requests of one identity about one kind of object.
type pool struct{ user, bucket string }

func (c *call) pool() pool { return pool{c.request.User, c.request.Subject.Key.Bucket} }

// batch is the requests of one step.
type batch struct {
	calls []*call
	// over is set when the turn of the batch is: what is left of it is sent beside
	// everything else.
	over bool
}

// outbox carries the requests of one controller out: those of a step one after the other
// at first, and what takes longer by up to [senders] at once, in the order that [order]
// keeps. It has no goroutine while nothing is under way.
type outbox struct {
	send Sender
	// each is set if calls are collected as they end, and not all together.
	each bool
	// ended is called when there is something to collect outside of a turn.
	notify func()

	mu       sync.Mutex
	order    order
	underWay map[pool]int
	ready    map[pool][]*call // which wait for a sender
	open     int              // calls that have not ended
	idle     chan struct{}    // closed when open is 0 again; nil before the first call
	done     []*call          // which have ended and are not collected
	number   int              // of the next call
}

func newOutbox(send Sender, each bool, notify func()) *outbox {
	return &outbox{send: send, each: each, notify: notify, order: newOrder(), underWay: map[pool]int{}, ready: map[pool][]*call{}}
}

// deliver sends requests one after the other, but for those that have to wait for others
// under way. If that takes longer than patience, it returns, and what is left is sent
// beside everything else.
func (o *outbox) deliver(ctx context.Context, requests []Request, patience time.Duration) {
	b := o.add(requests)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for _, c := range b.calls {
			if o.begins(c) {
				o.carry(ctx, c)
			}
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-sent:
	case <-timer.C:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	b.over = true
	for _, c := range b.calls {
		if !c.begun && c.waits == 0 {
			o.release(ctx, c)
		}
	}
}

// add takes in the requests of a step.
func (o *outbox) add(requests []Request) *batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == 0 {
		o.idle = make(chan struct{})
	}
	o.open += len(requests)
	b := &batch{calls: make([]*call, len(requests))}
	for i := range requests {
		b.calls[i] = &call{request: requests[i], batch: b, number: o.number}
		o.number++
		o.order.add(b.calls[i])
	}
	return b
}

// begins reports whether a call can be sent in the turn of its batch, and gives it a sender.
func (o *outbox) begins(c *call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.batch.over || c.waits > 0 || o.underWay[c.pool()] >= senders {
		return false
	}
	c.begun = true
	o.underWay[c.pool()]++
	return true
}

// release gives a call that waits for no other one to its pool, whose senders begin what they can.
// mu is held.
func (o *outbox) release(ctx context.Context, c *call) {
	o.ready[c.pool()] = append(o.ready[c.pool()], c)
	o.begin(ctx, c.pool())
}

// begin gives senders of a pool that are free something to do. mu is held.
func (o *outbox) begin(ctx context.Context, p pool) {
	for len(o.ready[p]) > 0 && o.underWay[p] < senders {
		c := o.ready[p][0]
		o.ready[p] = o.ready[p][1:]
		c.begun = true
		o.underWay[p]++
		go o.carry(ctx, c)
	}
	if len(o.ready[p]) == 0 {
		delete(o.ready, p)
	}
}

// carry sends one request and takes note of its outcome.
func (o *outbox) carry(ctx context.Context, c *call) {
	if c.err = ctx.Err(); c.err == nil {
		c.err = o.send(ctx, c.request)
	}
	if o.end(ctx, c) {
		o.notify()
	}
}

// end notes that a call has ended, and begins what waited for it. It reports whether the
// runner has to be told.
func (o *outbox) end(ctx context.Context, c *call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.underWay[c.pool()]--; o.underWay[c.pool()] == 0 {
		delete(o.underWay, c.pool())
	}
	o.done = append(o.done, c)
	if o.open--; o.open == 0 {
		close(o.idle)
	}
	for _, other := range o.order.end(c) {
		if other.batch.over {
			o.release(ctx, other)
		}
	}
	o.begin(ctx, c.pool())
	return c.batch.over && (o.each || o.open == 0)
}

// collect returns the calls that have ended since the last time, in the order of their
// requests: all of a step at once, unless each is set.
func (o *outbox) collect() []*call {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open > 0 && !o.each {
		return nil
	}
	out := o.done
	o.done = nil
	slices.SortFunc(out, func(a, b *call) int { return cmp.Compare(a.number, b.number) })
	return out
}

// empty reports whether every call has ended and is collected.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open == 0 && len(o.done) == 0
}

// wait waits until every call has ended.
func (o *outbox) wait() {
	o.mu.Lock()
	idle := o.idle
	o.mu.Unlock()
	if idle != nil {
		<-idle
	}
}
