// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gc collects objects whose owners are gone.
//
// The [Collector] is a [step.Controller]: it looks at owner references,
// deletion timestamps and the finalizers orphan and foregroundDeletion, and
// returns the deletions and patches that they call for:
//
//   - an object all of whose owners are absent is deleted, in the background
//     unless its own finalizers say otherwise;
//   - an object that has a living owner loses its references to absent ones;
//   - an owner that is deleted in the foreground waits for the dependents that
//     block it, which are deleted; then its finalizer is removed;
//   - the dependents of an orphaning owner lose their references to it; then its
//     finalizer is removed.
//
// A reference is resolved by its apiVersion, kind, name and uid, in the
// namespace of the dependent or cluster-scoped; an owner in another namespace
// therefore counts as absent. An object with an owner of a kind that is not
// served, and a cluster-scoped one with a namespaced owner, are left alone.
//
// Owners and dependents may be objects of other servers, behind APIServices: the collector
// lists and watches their metadata. An owner that it has not seen there is absent only if its
// server says so when it is asked; while a server does not say what it serves, nothing is
// collected that depends on that.
package gc

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Collector is the garbage collector.
type Collector struct {
	catalog step.Catalog
	decode  step.Decoder
	index   *index
	// due holds what has to be looked at in the next step.
	due step.KeySet
	// stuck holds objects with owners of a kind that is not served, to be
	// looked at again when other kinds are.
	stuck step.KeySet
	// underWay are the numbers of requests that are not reported, by subject.
	underWay   map[storage.Key]int
	generation uint64
	elsewhere
}

var (
	_ step.Pipelined = (*Collector)(nil)
	_ step.Waker     = (*Collector)(nil)
	_ step.Signaller = (*Collector)(nil)
)

// New returns a collector for the resources of a catalog. fetch reaches those of other
// servers, whose watches [Collector.Close] ends.
func New(catalog step.Catalog, decode step.Decoder, fetch step.Fetcher) *Collector {
	return &Collector{
		catalog: catalog, decode: decode, index: newIndex(), due: step.KeySet{}, stuck: step.KeySet{},
		underWay: map[storage.Key]int{}, elsewhere: newElsewhere(fetch),
	}
}

// Pipelined implements [step.Pipelined]: another server that does not answer delays no other
// object.
func (*Collector) Pipelined() {}

// Name implements [step.Controller].
func (c *Collector) Name() string { return "garbage-collector-controller" }

// Reset implements [step.Controller].
func (c *Collector) Reset(view storage.View) {
	c.index, c.due, c.stuck = newIndex(), step.KeySet{}, step.KeySet{}
	for bucket := range view.Buckets() {
		for rec := range view.Ascend(bucket, "", "") {
			if obj := c.decode(rec); obj != nil {
				c.index.put(rec.Key, obj)
				c.consider(rec.Key, obj)
			}
		}
	}
	for key, obj := range c.objects {
		c.index.put(key, obj)
		c.consider(key, obj)
	}
}

// Filter implements [step.Controller]. An object without owners and finalizers
// concerns the collector only if it has dependents, when it is created or deleted.
func (c *Collector) Filter(e storage.Event) bool {
	if len(c.stuck) > 0 {
		return true // the served resources may have changed
	}
	uid, bare := step.Bare(e.Record)
	if !bare {
		return true
	}
	if e.Previous == nil || e.Deleted {
		if len(c.index.dependents[types.UID(uid)]) > 0 {
			return true
		}
	}
	if e.Previous != nil {
		_, bare = step.Bare(e.Previous)
	}
	return !bare
}

// Handle implements [step.Controller].
func (c *Collector) Handle(e storage.Event) {
	key := e.Record.Key
	obj := c.decode(e.Record)
	if obj == nil {
		return
	}
	var before *step.Object
	if e.Previous != nil {
		before = c.decode(e.Previous)
	}
	if e.Deleted {
		c.index.remove(key)
	} else {
		c.index.put(key, obj)
		c.consider(key, obj)
	}
	c.related(key, before, obj)
}

// related makes due what is because of an object: its dependents, and the owners that it
// blocks.
func (c *Collector) related(key storage.Key, before, obj *step.Object) {
	for _, state := range []*step.Object{before, obj} {
		if state == nil {
			continue
		}
		c.due.Add(c.index.dependentsOf(state.UID)...)
		for _, ref := range state.Owners {
			if owner, ok := c.ownerKey(key, ref); ok {
				c.due.Add(owner)
			}
		}
	}
}

// consider makes an object due when its own state may call for something.
func (c *Collector) consider(key storage.Key, obj *step.Object) {
	if len(obj.Owners) > 0 || obj.Deleting {
		c.due.Add(key)
	}
}

// ownerKey returns where the owner that a reference names would be stored.
func (c *Collector) ownerKey(dependent storage.Key, ref metav1.OwnerReference) (storage.Key, bool) {
	r, ok := c.catalog.Kind(ref.APIVersion, ref.Kind)
	if !ok {
		if r, ok = c.catalog.Elsewhere().Kind(ref.APIVersion, ref.Kind); ok {
			ok = step.IsPlainName(ref.Name)
		}
	}
	if !ok {
		return storage.Key{}, false
	}
	namespace, _ := step.SplitName(dependent.Name)
	if r.Namespaced && namespace == "" {
		return storage.Key{}, false
	}
	return r.Key(namespace, ref.Name), true
}

// Sync implements [step.Controller].
func (c *Collector) Sync(view storage.View, now time.Time) []step.Request {
	if g := c.catalog.Generation(); g != c.generation {
		c.generation = g
		c.due.Add(c.stuck.Sorted()...)
		clear(c.stuck)
		c.followOthers()
	}
	c.takeIn()
	c.retry(now)
	var out []step.Request
	for _, key := range c.due.Sorted() {
		if c.underWay[key] > 0 {
			continue
		}
		delete(c.due, key)
		requests := c.look(view, key)
		if !slices.ContainsFunc(requests, func(r step.Request) bool { return r.Do != nil }) {
			delete(c.retries, key)
		}
		for i := range requests {
			c.underWay[requests[i].Subject.Key]++
		}
		out = append(out, requests...)
	}
	return out
}

// Done implements [step.Controller]. What was refused is looked at again.
func (c *Collector) Done(r step.Request, err error) {
	key := r.Subject.Key
	if c.underWay[key]--; c.underWay[key] <= 0 {
		delete(c.underWay, key)
	}
	switch {
	case r.Do != nil:
		c.called(r, err)
	case err != nil:
		c.due.Add(key)
	}
}

// get returns the metadata of an object, and the record of a stored one; nil if there is none.
func (c *Collector) get(view storage.View, key storage.Key) (*storage.Record, *step.Object) {
	if step.IsElsewhere(key) {
		return nil, c.objects[key]
	}
	rec := view.Get(key)
	if rec == nil {
		return nil, nil
	}
	return rec, c.decode(rec)
}

// dependents returns the objects whose reference matches an owner in uid, kind, name and
// namespace, in the order of their keys.
func (c *Collector) dependents(view storage.View, owner storage.Key, uid types.UID) []dependent {
	var out []dependent
	for _, key := range c.index.dependentsOf(uid) {
		rec, obj := c.get(view, key)
		if obj == nil {
			continue
		}
		for _, ref := range obj.Owners {
			if ref.UID != uid {
				continue
			}
			if at, ok := c.ownerKey(key, ref); ok && at == owner {
				out = append(out, dependent{key: key, record: rec, object: obj, blocks: ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion})
				break
			}
		}
	}
	return out
}

// dependent is an object seen from one of its owners.
type dependent struct {
	key    storage.Key
	record *storage.Record
	object *step.Object
	// blocks reports that the owner has to wait for it when it is deleted in the
	// foreground.
	blocks bool
}
