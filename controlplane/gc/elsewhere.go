// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

type groupVersion = schema.GroupVersion

// Bounds of requests to other servers.
const (
	requestTimeout = 30 * time.Second
	// firstRetry and lastRetry are the delays before an object is looked at again of which a
	// request has failed.
	firstRetry, lastRetry = time.Second, time.Minute
	// mostAnswers about owners are kept.
	mostAnswers = 4096
)

// elsewhere is what is known of the objects of other servers.
type elsewhere struct {
	fetch   step.Fetcher
	mirrors *mirrors
	// objects are those of the mirrors, as far as they were taken in; next are the changes to
	// take in, which were there before the next view.
	objects map[storage.Key]*step.Object
	next    map[storage.Key]*changes
	// absent are the answers of servers about owners that no mirror has.
	absent map[types.UID]bool
	// calls are the requests to other servers that are not reported, by number.
	calls  map[uint64]*call
	number uint64
	// retries are the objects of which requests have failed.
	retries map[storage.Key]*retry
}

// call is one request to another server. A sender writes the outcome, the controller reads it
// once the request is reported.
type call struct {
	err error
	// owner is the one that the request asks about; empty: it changes something.
	owner  types.UID
	absent bool
}

type retry struct {
	at    time.Time // zero: not decided yet
	tries int
}

func newElsewhere(fetch step.Fetcher) elsewhere {
	return elsewhere{
		fetch: fetch, mirrors: newMirrors(fetch), objects: map[storage.Key]*step.Object{}, absent: map[types.UID]bool{},
		calls: map[uint64]*call{}, retries: map[storage.Key]*retry{},
	}
}

// resource returns that of a key, if it is served now.
func (c *Collector) resource(key storage.Key) (step.Resource, bool) {
	if step.IsElsewhere(key) {
		return c.catalog.Elsewhere().Bucket(key.Bucket)
	}
	return c.catalog.Bucket(key.Bucket)
}

// takeIn observes what the mirrors had seen before the view of this step was taken, so that
// owners that were written first are in the view.
func (c *Collector) takeIn() {
	for key, change := range c.next {
		if c.mirrors.by[key.Bucket] == nil {
			continue // it has ended meanwhile
		}
		if key.Name == "" {
			c.askAgain()
			continue
		}
		before := c.objects[key]
		if change.object == nil {
			delete(c.objects, key)
			c.index.remove(key)
		} else {
			c.objects[key] = change.object
			c.index.put(key, change.object)
			c.consider(key, change.object)
		}
		for _, uid := range change.gone {
			delete(c.absent, uid)
			c.due.Add(c.index.dependentsOf(uid)...)
		}
		c.related(key, before, change.object)
	}
	c.next = c.mirrors.take()
}

// askAgain forgets that owners were there: some may have gone unseen.
func (c *Collector) askAgain() {
	for uid, absent := range c.absent {
		if !absent {
			delete(c.absent, uid)
			c.due.Add(c.index.dependentsOf(uid)...)
		}
	}
}

// followOthers begins and ends mirrors. The objects of those that have ended are forgotten,
// which is no deletion.
func (c *Collector) followOthers() {
	for _, bucket := range c.mirrors.follow(c.catalog.Elsewhere()) {
		for key := range c.objects {
			if key.Bucket == bucket {
				delete(c.objects, key)
				c.index.remove(key)
			}
		}
	}
}

// ask returns the request for an owner that no mirror has. It may be too young for that.
func (c *Collector) ask(dependent storage.Key, r step.Resource, owner storage.Key, uid types.UID) step.Request {
	_, name := step.SplitName(owner.Name)
	out := &call{owner: uid}
	request := step.Request{
		User: step.GarbageCollector, Method: http.MethodGet, Path: r.Object(owner), Accept: step.MetadataObject,
		Subject: step.Subject{Key: dependent, Detail: "look for owner " + string(uid)},
	}
	asked := request
	return c.calling(request, out, func(ctx context.Context) error {
		answer, err := c.fetch(ctx, asked)
		if err != nil {
			if out.absent = absent(err, name); out.absent {
				return nil
			}
			return err
		}
		defer answer.Close()
		found, err := uidOf(answer)
		out.absent = err == nil && found != uid
		return err
	})
}

// changing returns a request that changes an object of another server.
func (c *Collector) changing(r step.Request) step.Request {
	sent := r
	return c.calling(r, &call{}, func(ctx context.Context) error {
		answer, err := c.fetch(ctx, sent)
		if err != nil {
			if apierrors.IsNotFound(err) {
				return nil // the mirror learns that it has gone
			}
			return err
		}
		return answer.Close()
	})
}

// calling gives a request its function. A server that refuses, or does not answer, is no
// failure of this controller: the object is looked at again later, and all others now.
func (c *Collector) calling(r step.Request, out *call, do func(context.Context) error) step.Request {
	c.number++
	r.Number = c.number
	c.calls[r.Number] = out
	r.Do = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		out.err = do(ctx)
		return nil
	}
	return r
}

// called takes in the outcome of a request to another server.
func (c *Collector) called(r step.Request, err error) {
	out := c.calls[r.Number]
	delete(c.calls, r.Number)
	key := r.Subject.Key
	if err := errors.Join(err, out.err); err != nil {
		known := c.retries[key]
		if known == nil {
			known = &retry{}
			c.retries[key] = known
		}
		known.at = time.Time{}
		known.tries++
		return
	}
	delete(c.retries, key)
	if out.owner == "" {
		return
	}
	if len(c.absent) >= mostAnswers {
		clear(c.absent)
	}
	c.absent[out.owner] = out.absent
	c.due.Add(key)
}

// retry makes due what has waited long enough.
func (c *Collector) retry(now time.Time) {
	for key, r := range c.retries {
		switch {
		case r.at.IsZero():
			r.at = now.Add(min(firstRetry<<min(r.tries-1, 10), lastRetry))
		case !now.Before(r.at):
			r.at = now.Add(lastRetry) // until the outcome is known
			c.due.Add(key)
		}
	}
}

// Wake implements [step.Waker].
func (c *Collector) Wake() time.Time {
	if len(c.next) > 0 {
		return time.Unix(0, 1) // now
	}
	var first time.Time
	for _, r := range c.retries {
		if at := r.at; !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// OnSignal implements [step.Signaller].
func (c *Collector) OnSignal(signal func()) {
	c.mirrors.mu.Lock()
	defer c.mirrors.mu.Unlock()
	c.mirrors.signal = signal
}

// Close ends the watches of other servers. Closing twice is no error.
func (c *Collector) Close() { c.mirrors.close() }

// Component returns the collector as a part of a control plane.
func (c *Collector) Component() component.Component {
	p := component.Controller(c)
	p.Close = c.Close
	return p
}
