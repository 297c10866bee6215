// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps local copies of what an operator watches: reflectors fill
// indexed stores, handlers are told of changes, and reads are answered from
// memory.
//
//	live, err := client.New(cfg, client.Options{Scheme: scheme})
//	c, err := cache.New(live, cache.Options{})
//	jobs, err := c.Informer(&batchv1.Job{})   // declared: watched from Start on
//	jobs.AddHandler(func(e cache.Event) { ... })
//	err = c.Start(ctx)
//	err = c.WaitForSync(ctx)
//	cl := cache.NewClient(live, c)            // reads from c, writes through live
//
// Guarantees. Events of one object come in order; any may be merged with later
// ones, and after an interruption deletions are inferred from a list. A read returns
// what the options of the kind say (selection, namespaces, transform, indexes),
// whether a watch, an own write or the server has the answer; only one with
// [client.Live] goes past them. Reads through NewClient see the own writes made through
// it, whatever the watch has delivered. Objects from Get and List are private copies;
// those of events and of Lister.All are shared and must not be changed. A watch that
// fails, for whatever reason, is retried for as long as the cache runs, and Status says
// why and what to do.
//
// The cache works without controllers: Informer and Lister are the shared
// informer factory and the typed listers of client-go under other names.
package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/collection"
	"github.com/steer-dev/steer/cache/internal/definition"
	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/cache/internal/listing"
	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/listwatch"
)

// Cache holds the informers of one API server.
//
// Lifecycle: Start begins the watches of every declared kind and returns;
// kinds declared later start at once. WaitForSync waits until every declared
// kind has synced. Stop, or the end of Start's context, ends all watches and
// handlers; Stop returns when the last goroutine has. Start and Stop are
// idempotent, and a stopped cache stays stopped.
type Cache struct {
	live    client.Client
	opts    Options
	log     *slog.Logger
	server  *collection.Server
	kinds   map[schema.GroupVersionKind]KindOptions
	stopped chan struct{} // closed by Stop
	// stopping are the informers whose last hold was closed.
	stopping sync.WaitGroup

	mu        sync.RWMutex
	informers map[form.Place]*shared
	indexes   map[form.Place]map[string]IndexFunc
	ctx       context.Context // of Start; nil before
	cancel    context.CancelFunc
	forget    func() bool // lets go of Start's context
	ended     bool
	told      map[form.Place]bool // undeclared reads that have been logged
	views     []*Cache
	parent    *Cache // of a view; else nil
	number    int    // of a view among those of its parent, from 1; else 0
}

var (
	_ client.Reader = (*Cache)(nil)
	_ Informers     = (*Cache)(nil)
)

// New makes a cache of the server that live talks to. Nothing is sent. live is what
// client.New returned, or another Client that is a listwatch.Source.
func New(live client.Client, opts Options) (*Cache, error) {
	source, ok := live.(listwatch.Source)
	if !ok {
		return nil, fmt.Errorf("make cache: a %T cannot list and watch for a cache: pass the client that client.New returned, and wrap that of cache.NewClient", live)
	}
	if opts.PageSize <= 0 {
		opts.PageSize = 500
	}
	if opts.IdleTimeout <= 0 {
		opts.IdleTimeout = 5 * time.Minute
	}
	c := &Cache{
		live: live, opts: opts, log: opts.Log, server: collection.NewServer(source),
		kinds: map[schema.GroupVersionKind]KindOptions{}, stopped: make(chan struct{}),
		informers: map[form.Place]*shared{}, indexes: map[form.Place]map[string]IndexFunc{}, told: map[form.Place]bool{},
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	for _, k := range opts.ByKind {
		if k.Object == nil {
			return nil, errors.New("make cache: KindOptions need an Object that says the kind")
		}
		gvk, err := client.KindOf(live.Scheme(), k.Object)
		if err != nil {
			return nil, fmt.Errorf("make cache: %w", err)
		}
		if _, twice := c.kinds[gvk]; twice {
			return nil, fmt.Errorf("make cache: two KindOptions for %s", gvk)
		}
		c.kinds[gvk] = k
	}
	return c, nil
}

// optionsFor are what reads of a kind depend on.
func (c *Cache) optionsFor(gvk schema.GroupVersionKind) definition.Options {
	k := c.kinds[gvk]
	o := definition.Options{
		Namespaces: c.opts.Namespaces, Labels: k.Labels, Fields: k.Fields, Transform: c.opts.Transform,
		ManagedFields: c.opts.KeepManagedFields || k.KeepManagedFields,
	}
	if k.Namespaces != nil {
		o.Namespaces = k.Namespaces
	}
	if k.Transform != nil {
		o.Transform = k.Transform
	}
	o.Namespaces = slices.Compact(slices.Sorted(slices.Values(o.Namespaces)))
	if slices.Contains(o.Namespaces, "") {
		o.Namespaces = nil
	}
	return o
}

// Start begins the watches. It does not wait for them.
func (c *Cache) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return fmt.Errorf("start cache: %w", ErrStopped)
	}
	if c.ctx != nil {
		return nil
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.forget = context.AfterFunc(ctx, c.Stop)
	for _, s := range c.informers {
		s.start(c.ctx)
	}
	for _, v := range c.views {
		if err := v.Start(c.ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) started() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.ctx != nil
}

// WaitForSync waits until every declared kind has synced; the error of a ctx
// that ends first says which kinds have not, why, and what to do.
func (c *Cache) WaitForSync(ctx context.Context) error {
	var errs []error
	for _, s := range c.all() {
		if err := s.waitForSync(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Stop ends everything and returns when it has ended.
func (c *Cache) Stop() {
	c.mu.Lock()
	if !c.ended {
		c.ended = true
		close(c.stopped)
		if c.cancel != nil {
			c.cancel()
			c.forget()
		}
	}
	views := c.views
	c.mu.Unlock()
	for _, v := range views {
		v.Stop()
	}
	for _, s := range c.all() {
		s.stop()
	}
	c.stopping.Wait()
}

// all is every informer, those of views as well, in order of kind.
func (c *Cache) all() []*shared {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]*shared, 0, len(c.informers))
	for _, s := range c.informers {
		all = append(all, s)
	}
	for _, v := range c.views {
		all = append(all, v.all()...)
	}
	slices.SortFunc(all, func(a, b *shared) int {
		if n := strings.Compare(a.Place.GVK.String(), b.Place.GVK.String()); n != 0 {
			return n
		}
		return int(a.Place.Form) - int(b.Place.Form)
	})
	return all
}

// Informers is the status of every informer, in order of kind.
func (c *Cache) Informers() []Status {
	var out []Status
	for _, s := range c.all() {
		out = append(out, s.status())
	}
	return out
}

// Informer implements Informers.
func (c *Cache) Informer(obj client.Object) (Informer, error) {
	gvk, err := client.KindOf(c.live.Scheme(), obj)
	if err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	if home := c.home(gvk); home != c {
		return home.Informer(obj)
	}
	p := form.Place{GVK: gvk, Form: form.FormOf(obj)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, fmt.Errorf("informer of %s: %w", gvk.Kind, ErrStopped)
	}
	s := c.findLocked(p)
	if s == nil {
		if s, err = newShared(c, p); err != nil {
			return nil, fmt.Errorf("informer of %s: %w", gvk.Kind, err)
		}
		for field, fn := range c.indexes[p] {
			if err := s.store.AddIndex(listing.FieldIndex(field), form.OfWhole(fn)); err != nil {
				return nil, fmt.Errorf("informer of %s: %w", gvk.Kind, err)
			}
		}
		c.informers[p] = s
		if c.ctx != nil {
			s.start(c.ctx)
		}
	}
	s.holds++
	h := &hold{s: s}
	if p.Form == form.Metadata && s.Place.Form != form.Metadata {
		h.fit = metadataOnly
	}
	return h, nil
}

// findLocked is the informer that can answer for p, or nil.
func (c *Cache) findLocked(p form.Place) *shared {
	for _, f := range p.Form.Covers() {
		if s := c.informers[form.Place{GVK: p.GVK, Form: f}]; s != nil {
			return s
		}
	}
	return nil
}

// of is every informer of the kind, those of views as well.
func (c *Cache) of(gvk schema.GroupVersionKind) []*shared {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []*shared
	for _, v := range c.views {
		out = append(out, v.of(gvk)...)
	}
	for _, f := range []form.Form{form.Typed, form.Untyped, form.Metadata} {
		if s := c.informers[form.Place{GVK: gvk, Form: f}]; s != nil {
			out = append(out, s)
		}
	}
	return out
}

// release gives a hold back; the last one ends the watch.
func (c *Cache) release(s *shared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.holds--
	if s.holds > 0 || c.ended { // Stop stops those that are left
		return
	}
	if c.informers[s.Place] == s {
		delete(c.informers, s.Place)
	}
	// The caller may be a handler of s, which stop waits for.
	c.stopping.Go(s.stop)
}

// IndexField makes client.MatchingFields{field: value} work for cached reads of
// obj's kind. It may be called at any time, once per field.
func (c *Cache) IndexField(obj client.Object, field string, fn IndexFunc) error {
	gvk, err := client.KindOf(c.live.Scheme(), obj)
	if err != nil {
		return fmt.Errorf("index %s: %w", field, err)
	}
	if home := c.home(gvk); home != c {
		return home.IndexField(obj, field, fn)
	}
	p := form.Place{GVK: gvk, Form: form.FormOf(obj)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.indexes[p][field]; taken {
		return fmt.Errorf("index %s of %s: it exists already: index a field once, where the controller is set up", field, gvk.Kind)
	}
	if c.indexes[p] == nil {
		c.indexes[p] = map[string]IndexFunc{}
	}
	c.indexes[p][field] = fn
	if s := c.informers[p]; s != nil {
		return s.store.AddIndex(listing.FieldIndex(field), form.OfWhole(fn))
	}
	return nil
}

// hold implements Informer.
type hold struct {
	s *shared
	// fit gives events the form that was asked for; nil where s holds it.
	fit func(Event) (Event, error)
	mu  sync.Mutex
	// registered are the handlers added through this hold.
	registered []*registration
	closed     bool
}

func (h *hold) register(r *registration) Registration {
	r.fit = h.fit
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.registered = append(h.registered, r)
	}
	h.mu.Unlock()
	if closed {
		r.quit()
		return r
	}
	h.s.add(r) // it calls the handler, which may use the hold
	return r
}

func (h *hold) AddHandler(fn Handler) Registration {
	r := newRegistration(h.s)
	r.handler = fn
	return h.register(r)
}

func (h *hold) AddEventHandler(handler ResourceEventHandler, opts EventHandlerOptions) Registration {
	r := newRegistration(h.s)
	r.buffer = newBuffer(handler, opts, func(p any) {
		h.s.cache.log.Error("event handler panicked; the event is lost to it", "kind", h.s.Place.GVK.String(), "panic", p)
	})
	return h.register(r)
}

func (h *hold) HasSynced() bool { return h.s.isSynced() }

func (h *hold) WaitForSync(ctx context.Context) error { return h.s.waitForSync(ctx) }

func (h *hold) Status() Status { return h.s.status() }

func (h *hold) Close() {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.closed = true
	registered := h.registered
	h.registered = nil
	h.mu.Unlock()
	for _, r := range registered {
		r.Remove()
	}
	h.s.cache.release(h.s)
}

// KeyOf is obj's key in the notation of client-go's stores: "namespace/name",
// or "name" for cluster-scoped kinds.
func KeyOf(obj client.Object) string {
	if ns := obj.GetNamespace(); ns != "" {
		return ns + "/" + obj.GetName()
	}
	return obj.GetName()
}

// OwnedBy selects, in lists answered by a cache, the objects that name the
// owner with this uid among their owner references.
func OwnedBy(owner client.Object) client.ListOption { return ownedBy(owner.GetUID()) }

type ownedBy string

func (o ownedBy) ApplyToList(to *client.ListOptions) {
	client.MatchingFields{store.OwnerIndex: string(o)}.ApplyToList(to)
}

func typeName(obj any) string { return strings.TrimPrefix(reflect.TypeOf(obj).String(), "*") }
