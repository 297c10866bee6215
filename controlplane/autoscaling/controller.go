// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package autoscaling runs HorizontalPodAutoscalers: it reads the metrics that other servers
// serve, computes how many replicas they call for, and scales.
package autoscaling

import (
	"bytes"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// ControllerName is the name of a [Controller].
const ControllerName = "horizontal-pod-autoscaler-controller"

const (
	scalers     = "autoscaling/horizontalpodautoscalers"
	definitions = "apiextensions.k8s.io/customresourcedefinitions"
	services    = "apiregistration.k8s.io/apiservices"
	user        = step.KubeSystem + "horizontal-pod-autoscaler"
)

// Controller runs HorizontalPodAutoscalers, with the times that the controller of a cluster
// has by default. A pass over an autoscaler reads its metrics, scales its target, and writes
// its status. Passes follow each other every 15 seconds while metrics are read. One also
// begins when an autoscaler is created or its spec changes, and when its target changes, but
// then not within 15 seconds of metrics that were read, or of a change of the target.
type Controller struct {
	catalog step.Catalog
	fetch   step.Fetcher
	due     step.KeySet
	// targets are what autoscalers scale, and watching the autoscalers of each.
	targets  map[storage.Key]storage.Key
	watching map[storage.Key]step.KeySet
	// lost are autoscalers of kinds that are not served.
	lost  step.KeySet
	known map[storage.Key]*scaler
	// again is when the next pass of an autoscaler begins.
	again step.Alarms
	// busy are those that a request is under way about. passes is how many have begun.
	busy   step.KeySet
	passes uint64
	events events
}

// scaler is what is known of an autoscaler beside what is stored.
type scaler struct {
	history
	// selector of the Pods of its target, in the last pass; nil: unknown.
	selector labels.Selector
	// next is when the next pass may begin, unless prompt: the spec has changed.
	next   time.Time
	prompt bool
	// pass is the one under way; nil: none. again reports that the autoscaler or its target
	// has changed since it began.
	pass  *pass
	again bool
}

// period is the time between two passes that read metrics, or scale.
const period = 15 * time.Second

var (
	_ step.Pipelined = (*Controller)(nil)
	_ step.Waker     = (*Controller)(nil)
)

// NewController returns a controller that has seen nothing. It finds targets through the
// catalog, and reads metrics with fetch.
func NewController(catalog step.Catalog, fetch step.Fetcher) *Controller {
	c := &Controller{catalog: catalog, fetch: fetch, busy: step.KeySet{}}
	c.forget()
	return c
}

func (c *Controller) forget() {
	c.due, c.lost = step.KeySet{}, step.KeySet{}
	c.targets, c.watching, c.known = map[storage.Key]storage.Key{}, map[storage.Key]step.KeySet{}, map[storage.Key]*scaler{}
	c.again = step.Alarms{}
	c.events = newEvents()
}

// Name implements [step.Controller].
func (*Controller) Name() string { return ControllerName }

// Pipelined implements [step.Pipelined]: metrics that take long delay no other autoscaler.
func (*Controller) Pipelined() {}

// Reset implements [step.Controller].
func (c *Controller) Reset(view storage.View) {
	c.forget()
	for rec := range view.Ascend(scalers, "", "") {
		c.due.Add(rec.Key)
	}
}

// Filter implements [step.Controller].
func (c *Controller) Filter(e storage.Event) bool {
	key := e.Record.Key
	return key.Bucket == scalers || len(c.watching) > 0 && c.watching[key] != nil || brings(key) && len(c.lost) > 0
}

// Handle implements [step.Controller].
func (c *Controller) Handle(e storage.Event) {
	switch key := e.Record.Key; {
	case key.Bucket == scalers && e.Deleted:
		c.follow(key, storage.Key{})
		delete(c.due, key)
		delete(c.lost, key)
		delete(c.known, key)
		delete(c.again, key)
	case key.Bucket == scalers && changes(e, "spec"):
		c.due.Add(key)
		if s := c.known[key]; s != nil && e.Previous != nil && generation(e.Record) != generation(e.Previous) {
			s.prompt = true
		}
	case brings(key) && len(c.lost) > 0:
		c.due.Add(c.lost.Sorted()...)
	}
	if watching := c.watching[e.Record.Key]; len(watching) > 0 {
		// What definitions define may say in the status which Pods an object has.
		builtin := strings.HasPrefix(e.Record.Key.Bucket, "apps/") || e.Record.Key.Bucket == "replicationcontrollers"
		if changes(e, "spec") || !builtin && changes(e, "status") {
			c.due.Add(watching.Sorted()...)
		}
	}
}

// brings reports whether an object can bring kinds.
func brings(key storage.Key) bool { return key.Bucket == definitions || key.Bucket == services }

// changes reports whether a write changes a member of an object that remains.
func changes(e storage.Event, member string) bool {
	return e.Deleted || e.Previous == nil || !bytes.Equal(jsontext.Raw(e.Record.Value, member), jsontext.Raw(e.Previous.Value, member))
}

// generation is that of an object, as it is written.
func generation(rec *storage.Record) string {
	return string(jsontext.Raw(rec.Value, "metadata", "generation"))
}

// follow notes where an autoscaler looks; nowhere for the zero key.
func (c *Controller) follow(scaler, target storage.Key) {
	if before := c.targets[scaler]; before != target {
		if delete(c.watching[before], scaler); len(c.watching[before]) == 0 {
			delete(c.watching, before)
		}
	}
	if target == (storage.Key{}) {
		delete(c.targets, scaler)
		return
	}
	if c.targets[scaler] = target; c.watching[target] == nil {
		c.watching[target] = step.KeySet{}
	}
	c.watching[target].Add(scaler)
}

// Sync implements [step.Controller].
func (c *Controller) Sync(view storage.View, now time.Time) []step.Request {
	c.again.Ring(now, c.due)
	keys := c.due.Sorted()
	clear(c.due)
	var out []step.Request
	for _, key := range keys {
		rec := view.Get(key)
		obj := &autoscalingv2.HorizontalPodAutoscaler{}
		if rec == nil || step.Decode(rec, obj) != nil || obj.DeletionTimestamp != nil {
			continue
		}
		s := c.known[key]
		if s == nil {
			s = &scaler{}
			c.known[key] = s
		}
		if _, busy := c.busy[key]; busy {
			s.again = true
			continue
		}
		l := look{controller: c, view: view, now: now, key: key, scaler: s, object: obj}
		if r, sends := l.advance(); sends {
			r.Number = s.pass.number
			c.busy.Add(key)
			out = append(out, r)
		}
	}
	return append(out, c.events.requests(view)...)
}

// Wake implements [step.Waker].
func (c *Controller) Wake() time.Time { return c.again.Wake() }

// Done implements [step.Controller].
func (c *Controller) Done(r step.Request, err error) {
	key := r.Subject.Key
	delete(c.busy, key)
	if c.events.reported(key) {
		return
	}
	c.due.Add(key)
	s := c.known[key]
	if s == nil || s.pass == nil || s.pass.number != r.Number {
		return // it was deleted, or the controller has begun anew
	}
	p := s.pass
	switch p.stage {
	case asking, measuring:
		p.stage = evaluating
	case scaling:
		switch {
		case err == nil:
			p.stage = scaled
		case apierrors.IsConflict(err) && p.conflicts < mostConflicts:
			p.conflicts++
			p.stage, p.asked = evaluating, nil
		default:
			p.stage, p.refusal = scaled, messageOf(err)
		}
	case writing:
		p.written = err == nil
	}
}
