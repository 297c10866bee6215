// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"bytes"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// When servers are asked again although nothing was written.
const (
	checkEvery = 30 * time.Second
	firstCheck = 250 * time.Millisecond
)

// Availability says of the services that other servers serve whether they are available:
// it asks the servers when anything changes that decides how they are reached, and from
// time to time.
type Availability struct {
	aggregation *Aggregation
	remote      map[storage.Key]*checked
	busy        step.KeySet // of those that a request is under way about
	// addresses counts the changes of addresses that were seen.
	addresses uint64
}

// checked is what is known about one service.
type checked struct {
	namespace, name string // of its Service
	// due reports that the service has to be looked at.
	due bool
	// asked is the answer of its server; nil: it was not asked since something has
	// changed.
	asked *answer
	// again is when it is asked again, and failures how often in a row it has failed.
	again    time.Time
	failures int
}

// answer is that of a server.
type answer struct{ err error }

var (
	_ step.Pipelined = (*Availability)(nil)
	_ step.Waker     = (*Availability)(nil)
	_ step.Signaller = (*Availability)(nil)
)

// NewAvailability returns a controller that has seen nothing yet.
func NewAvailability(a *Aggregation) *Availability {
	return &Availability{aggregation: a, remote: map[storage.Key]*checked{}, busy: step.KeySet{}}
}

// Name implements [step.Controller].
func (*Availability) Name() string { return "apiservice-status-remote-available-controller" }

// Pipelined implements [step.Pipelined]: a server that does not answer delays no other.
func (*Availability) Pipelined() {}

// OnSignal implements [step.Signaller]: a Service with another address is another server.
func (c *Availability) OnSignal(signal func()) { c.aggregation.onAddresses(signal) }

// Reset implements [step.Controller].
func (c *Availability) Reset(view storage.View) {
	clear(c.remote)
	for rec := range view.Ascend(Bucket, "", "") {
		c.see(rec, nil)
	}
}

// Filter implements [step.Controller].
func (c *Availability) Filter(e storage.Event) bool {
	switch e.Record.Key.Bucket {
	case Bucket:
		return true
	case serviceBucket, egress.SliceBucket, egress.EndpointsBucket:
		return len(c.remote) > 0
	}
	return false
}

// Handle implements [step.Controller].
func (c *Availability) Handle(e storage.Event) {
	switch key := e.Record.Key; {
	case key.Bucket == Bucket && e.Deleted:
		delete(c.remote, key)
	case key.Bucket == Bucket:
		c.see(e.Record, e.Previous)
	default:
		namespace, name := step.SplitName(key.Name)
		for _, s := range c.remote {
			if s.namespace == namespace && (key.Bucket == egress.SliceBucket || s.name == name) {
				s.due, s.asked = true, nil
			}
		}
	}
}

// see follows one service. The server is asked again unless only its status has changed.
func (c *Availability) see(rec, previous *storage.Record) {
	s := remote(rec)
	if s == nil {
		delete(c.remote, rec.Key)
		return
	}
	known := c.remote[rec.Key]
	if known == nil || previous == nil || !bytes.Equal(jsontext.Raw(rec.Value, "spec"), jsontext.Raw(previous.Value, "spec")) {
		known = &checked{namespace: s.Spec.Service.Namespace, name: s.Spec.Service.Name}
		c.remote[rec.Key] = known
	}
	known.due = true
}

// Sync implements [step.Controller].
func (c *Availability) Sync(view storage.View, now time.Time) []step.Request {
	due := step.KeySet{}
	changes := c.aggregation.services.Table.Changes()
	moved := changes != c.addresses
	c.addresses = changes
	for key, s := range c.remote {
		if moved {
			*s = checked{namespace: s.namespace, name: s.name, due: true}
		}
		if !s.again.IsZero() && !now.Before(s.again) {
			s.due, s.asked, s.again = true, nil, time.Time{}
		}
		if _, busy := c.busy[key]; s.due && !busy {
			due.Add(key)
		}
	}
	var out []step.Request
	for _, key := range due.Sorted() {
		requests := c.look(view, key, now)
		if len(requests) > 0 {
			c.busy.Add(key)
		}
		out = append(out, requests...)
	}
	return out
}

// Wake implements [step.Waker].
func (c *Availability) Wake() time.Time {
	var first time.Time
	for _, s := range c.remote {
		if !s.again.IsZero() && (first.IsZero() || s.again.Before(first)) {
			first = s.again
		}
	}
	return first
}

// Done implements [step.Controller].
func (c *Availability) Done(r step.Request, err error) {
	delete(c.busy, r.Subject.Key)
	s := c.remote[r.Subject.Key]
	if s == nil {
		return
	}
	if s.due = s.due || err != nil || r.Do != nil; err != nil {
		s.asked = nil
	}
}

// look returns what one service calls for.
func (c *Availability) look(view storage.View, key storage.Key, now time.Time) []step.Request {
	known := c.remote[key]
	known.due = false
	rec := view.Get(key)
	if rec == nil {
		return nil
	}
	s := remote(rec)
	if s == nil || s.DeletionTimestamp != nil {
		return nil
	}
	state, ok := c.stored(view, s)
	switch {
	case !ok:
		known.asked, known.again = nil, time.Time{} // what is missing has to be written
	case known.asked == nil:
		known.asked = &answer{}
		return []step.Request{c.ask(key, s, known.asked)}
	default:
		state = answered(known.asked.err)
		known.schedule(now)
	}
	state.LastTransitionTime = metav1.NewTime(now)
	if !setCondition(s, state) {
		return nil
	}
	return []step.Request{put(key, "/status", s)}
}

// stored is [reachable], of a Service that Resolve does not know.
func (c *Availability) stored(view storage.View, s service) (v1.APIServiceCondition, bool) {
	if _, given := c.aggregation.services.Given(context.Background(), reachOf(s).service); given {
		return v1.APIServiceCondition{}, true
	}
	state, ok := reachable(view, s)
	if advice := c.aggregation.services.Advice(reachOf(s).service); !ok && advice != "" {
		state.Message += " (" + advice + ")"
	}
	return state, ok
}

// ask returns the request that asks a server.
func (c *Availability) ask(key storage.Key, s service, into *answer) step.Request {
	return step.Request{
		User: checker().Name, Method: "GET", Path: versionPath(s), Subject: step.Subject{Key: key, Detail: "check"},
		Do: func(ctx context.Context) error {
			into.err = c.aggregation.behind(s).check(ctx, s)
			return nil // that a server does not answer is no failure of this controller
		},
	}
}

// schedule decides when the server is asked again.
func (s *checked) schedule(now time.Time) {
	if !s.again.IsZero() {
		return
	}
	if s.asked.err == nil {
		s.failures, s.again = 0, now.Add(checkEvery)
		return
	}
	s.again = now.Add(min(firstCheck<<min(s.failures, 10), checkEvery))
	s.failures++
}
