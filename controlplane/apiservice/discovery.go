// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"context"
	"net/http"
	"time"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// When servers are asked again what they serve.
const (
	describeEvery = time.Minute
	firstDescribe = 500 * time.Millisecond
)

// Discovery asks the servers of other versions what they serve, when their APIServices
// change and from time to time.
type Discovery struct {
	aggregation *Aggregation
	remote      map[storage.Key]*described
	busy        step.KeySet // of those that a server is asked about
	// addresses counts the changes of addresses that were seen.
	addresses uint64
}

// described is when the server of one service is asked.
type described struct {
	due bool
	// asked is how the request ended that is under way; nil: there is none.
	asked *answer
	// ended reports that a request has ended since the last step.
	ended    bool
	again    time.Time
	failures int
}

var (
	_ step.Pipelined = (*Discovery)(nil)
	_ step.Waker     = (*Discovery)(nil)
	_ step.Signaller = (*Discovery)(nil)
)

// NewDiscovery returns a controller that has seen nothing yet.
func NewDiscovery(a *Aggregation) *Discovery {
	return &Discovery{aggregation: a, remote: map[storage.Key]*described{}, busy: step.KeySet{}}
}

// Name implements [step.Controller].
func (*Discovery) Name() string { return "apiservice-discovery-controller" }

// Pipelined implements [step.Pipelined]: a server that does not answer delays no other.
func (*Discovery) Pipelined() {}

// OnSignal implements [step.Signaller]: a Service with another address is another server.
func (c *Discovery) OnSignal(signal func()) { c.aggregation.onAddresses(signal) }

// Reset implements [step.Controller].
func (c *Discovery) Reset(view storage.View) {
	clear(c.remote)
	for rec := range view.Ascend(Bucket, "", "") {
		c.see(rec)
	}
}

// Filter implements [step.Controller].
func (c *Discovery) Filter(e storage.Event) bool { return e.Record.Key.Bucket == Bucket }

// Handle implements [step.Controller].
func (c *Discovery) Handle(e storage.Event) {
	if e.Deleted {
		delete(c.remote, e.Record.Key)
		return
	}
	c.see(e.Record)
}

func (c *Discovery) see(rec *storage.Record) {
	if remote(rec) == nil {
		delete(c.remote, rec.Key)
		return
	}
	if known := c.remote[rec.Key]; known != nil {
		known.due, known.failures = true, 0
		return
	}
	c.remote[rec.Key] = &described{due: true}
}

// Sync implements [step.Controller].
func (c *Discovery) Sync(view storage.View, now time.Time) []step.Request {
	due := step.KeySet{}
	changes := c.aggregation.services.Table.Changes()
	moved := changes != c.addresses
	c.addresses = changes
	for key, s := range c.remote {
		if moved {
			s.due, s.failures = true, 0
		}
		if !s.again.IsZero() && !now.Before(s.again) {
			s.due, s.again = true, time.Time{}
		}
		if _, busy := c.busy[key]; s.due && !busy {
			due.Add(key)
		}
	}
	var out []step.Request
	for _, key := range due.Sorted() {
		known := c.remote[key]
		known.due = false
		if rec := view.Get(key); rec != nil {
			known.asked = &answer{}
			c.busy.Add(key)
			out = append(out, c.ask(key, remote(rec), known.asked))
		}
	}
	for _, s := range c.remote {
		s.schedule(now)
	}
	return out
}

// ask returns the request that asks a server.
func (c *Discovery) ask(key storage.Key, s service, into *answer) step.Request {
	return step.Request{
		User: checker().Name, Method: http.MethodGet, Path: "/apis", Subject: step.Subject{Key: key, Detail: "discovery"},
		Do: func(ctx context.Context) error {
			into.err = c.aggregation.describe(ctx, s)
			return nil // that a server does not answer is no failure of this controller
		},
	}
}

// Done implements [step.Controller].
func (c *Discovery) Done(r step.Request, err error) {
	delete(c.busy, r.Subject.Key)
	s := c.remote[r.Subject.Key]
	if s == nil || s.asked == nil {
		return
	}
	s.due = s.due || err != nil
	if s.failures++; s.asked.err == nil {
		s.failures = 0
	}
	s.asked, s.ended = nil, true
}

// schedule decides when a server that has been asked is asked again.
func (s *described) schedule(now time.Time) {
	if !s.ended {
		return
	}
	s.ended = false
	if s.again = now.Add(describeEvery); s.failures > 0 {
		s.again = now.Add(min(firstDescribe<<min(s.failures-1, 10), describeEvery))
	}
}

// Wake implements [step.Waker].
func (c *Discovery) Wake() time.Time {
	var first time.Time
	for _, s := range c.remote {
		if !s.again.IsZero() && (first.IsZero() || s.again.Before(first)) {
			first = s.again
		}
	}
	return first
}
