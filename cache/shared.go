// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steer-dev/steer/cache/internal/collection"
	"github.com/steer-dev/steer/cache/internal/definition"
	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/cache/internal/reflector"
	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/client/listwatch"
)

// queueLength is the most deltas decoded but not committed; a full queue holds
// the decoders, and through them the server, back.
const queueLength = 1024

// stopPatience is how long Stop waits for handlers that do not return.
const stopPatience = 30 * time.Second

// batchLength is the most deltas committed under one lock.
const batchLength = 256

// shared is an informer: the watches of one kind, its store and its handlers.
//
// Two goroutines lie between a socket and a handler: a reflector per watch
// decodes, one committer applies to the store and calls handlers.
type shared struct {
	definition.Definition
	cache   *Cache
	period  time.Duration // of resyncs; 0 for never
	store   *store.Store
	packing *form.Packing // of a compact informer, else nil
	sources []*collection.Source

	queue  chan store.Delta
	synced chan struct{} // closed when every watch has had a complete list

	// commit is held while deltas are applied and handlers called: its holder
	// it sees store and handlers agree.
	commit sync.Mutex
	lists  []bool // by scope: a list has been completed
	// handlers change under commit only; the slice is replaced, never changed.
	handlers atomic.Pointer[[]*registration]
	// changes of handlers that wait until the holder of commit releases it.
	changes changes

	mu      sync.Mutex
	holds   int
	reports []reflector.Report
	since   []time.Time // by scope: the begin of the trouble
	cancel  context.CancelFunc
	done    sync.WaitGroup
	mutated form.MutationDetector
}

func newShared(c *Cache, p form.Place) (*shared, error) {
	d, err := c.definitionOf(p)
	if err != nil {
		return nil, err
	}
	kind, newItem := c.kinds[p.GVK], d.NewItem
	namespaces := d.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	s := &shared{
		Definition: d, cache: c, period: cmp.Or(kind.Resync, c.opts.Resync), store: store.New(namespaces...),
		queue: make(chan store.Delta, queueLength), synced: make(chan struct{}),
		lists: make([]bool, len(namespaces)), reports: make([]reflector.Report, len(namespaces)), since: make([]time.Time, len(namespaces)),
	}
	s.mutated.On = c.opts.DetectMutation
	if c.opts.Compact || kind.Compact {
		s.packing = form.NewPacking(p, newItem)
	}
	var remembered []store.Delta
	for _, obj := range kind.Remembered {
		if want := newItem(); reflect.TypeOf(obj) != reflect.TypeOf(want) {
			return nil, fmt.Errorf("a remembered %T, but the kind is held as %T", obj, want)
		}
		remembered = append(remembered, store.Delta{Op: store.Put, Object: obj})
	}
	s.store.Commit(remembered, nil)
	for i, ns := range namespaces {
		src := collection.NewSource(c.server, c.live.Mapper(), collection.Sync(c.opts.InitialSync), i, listwatch.Collection{
			GVK: p.GVK, Namespace: ns, NewItem: collection.Objects(newItem),
			LabelSelector: d.Labels, FieldSelector: d.Fields,
		})
		src.Collection.Codec.DropManagedFields = !d.ManagedFields
		if s.packing == nil { // else objects do not stay
			// Parts are shared by objects that are not changed: not where a transform may,
			// nor where a forbidden change is to be told of the right object.
			src.Collection.Codec.Interner = &codec.Interner{Parts: d.Transform == nil && !c.opts.DetectMutation}
		}
		s.sources = append(s.sources, src)
	}
	return s, nil
}

// start begins the watches; the end of ctx, or stop, ends them.
func (s *shared) start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		return
	}
	ctx, s.cancel = context.WithCancel(ctx)
	for i, src := range s.sources {
		random := s.random(i)
		src.Random = random
		r := reflector.New(reflector.Config{
			Source: src, Sink: s, Scope: i, PageSize: s.cache.opts.PageSize, IdleTimeout: s.cache.opts.IdleTimeout,
			Random: random.Float64, Transform: s.Transform,
			Report: func(r reflector.Report) { s.report(ctx, i, r) },
		})
		s.done.Go(func() {
			defer src.Leave()
			_ = r.Run(ctx) // its only error is a second Run
		})
	}
	s.done.Go(func() { s.run(ctx) })
}

// random is what spreads the retries of one watch. It belongs to the watch, so
// that what it draws does not depend on the others.
func (s *shared) random(scope int) *rand.Rand {
	seed := s.cache.opts.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, s.Place.GVK, s.Place.Form, scope)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// stop ends the watches and returns when their goroutines have.
func (s *shared) stop() {
	s.mu.Lock()
	cancel := s.cancel
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	for _, r := range s.registered() {
		r.quit() // the committer may be waiting for room in its buffer
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.done.Wait()
		for _, r := range s.registered() {
			r.Wait()
		}
	}()
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-ended:
		s.mutated.Check()
	case <-patience.C:
		s.cache.log.Error("an event handler does not return; the cache stops without it", "kind", s.Place.GVK.String(), "waited", stopPatience)
	}
}

// Push implements reflector.Sink.
func (s *shared) Push(ctx context.Context, d store.Delta) error {
	select {
	case s.queue <- d:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Mark implements reflector.Sink.
func (s *shared) Mark() uint64 { return s.store.Mark() }

// run is the committer.
func (s *shared) run(ctx context.Context) {
	var resync <-chan time.Time
	if s.period > 0 {
		ticker := time.NewTicker(s.period)
		defer ticker.Stop()
		resync = ticker.C
	}
	var (
		batch   = make([]store.Delta, 0, batchLength)
		changes []store.Change
	)
	for {
		select {
		case <-ctx.Done():
			return
		case <-resync:
			s.resync()
			continue
		case d := <-s.queue:
			batch = append(batch[:0], d)
		}
		for len(batch) < batchLength {
			select {
			case d := <-s.queue:
				batch = append(batch, d)
				continue
			default:
			}
			break
		}
		changes = s.apply(batch, changes[:0])
		clear(batch)
		clear(changes)
	}
}

// apply commits a batch and calls the handlers.
func (s *shared) apply(batch []store.Delta, changes []store.Change) []store.Change {
	start := time.Now()
	s.commit.Lock()
	defer s.letGo()
	if s.packing != nil {
		s.packing.PackAll(batch)
		defer form.Settle(batch)
	}
	changes = s.store.Commit(batch, changes)
	told := len(s.registered()) > 0
	for i := range changes {
		s.mutated.Note(changes[i])
		if told {
			s.dispatch(eventOf(&changes[i]))
		}
	}
	for i := range batch {
		if op := batch[i].Op; (op == store.ListEnd || op == store.Covered) && !s.lists[batch[i].Scope] {
			s.lists[batch[i].Scope] = true
			if !slices.Contains(s.lists, false) {
				close(s.synced)
			}
		}
	}
	if m := s.cache.opts.Metrics; m != nil {
		kind := s.metricKind()
		_, revision := s.store.Revision()
		m.QueuedItems(kind, len(s.queue))
		m.StoreResourceVersion(kind, revision)
		m.Processed(kind, len(changes), time.Since(start))
	}
	return changes
}

func eventOf(c *store.Change) Event {
	switch {
	case c.Old == nil:
		return Event{Type: Added, Object: form.Whole(c.New)}
	case c.New == nil:
		return Event{Type: Deleted, Object: form.Whole(c.Old), Inferred: c.Inferred}
	}
	return Event{Type: Updated, Object: form.Whole(c.New), Old: form.Whole(c.Old)}
}

func (s *shared) dispatch(e Event) {
	e.Initial = e.Type == Added && !s.isSynced()
	if e.Type == Updated && !e.Resync {
		e.changed = &changed{}
	}
	for _, r := range s.registered() {
		r.call(e)
	}
}

// resync shows every object again.
func (s *shared) resync() {
	s.commit.Lock()
	defer s.letGo()
	if len(s.registered()) == 0 {
		return
	}
	for _, obj := range s.store.All() {
		obj = form.Whole(obj)
		s.dispatch(Event{Type: Updated, Object: obj, Old: obj, Resync: true})
	}
}

func (s *shared) isSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// waitForSync waits until s can answer reads. The error of an early end says what to
// do; after Stop it is ErrStopped, whatever was synced before.
func (s *shared) waitForSync(ctx context.Context) error {
	select {
	case <-s.cache.stopped:
		return fmt.Errorf("cache of %s: %w", s.Place.GVK.Kind, ErrStopped)
	default:
	}
	if s.isSynced() {
		return nil
	}
	if !s.cache.started() && ctx.Value(awaitStart{}) == nil {
		return fmt.Errorf("cache of %s: %w", s.Place.GVK.Kind, ErrNotStarted)
	}
	select {
	case <-s.synced:
		return nil
	case <-s.cache.stopped:
		return fmt.Errorf("cache of %s: %w", s.Place.GVK.Kind, ErrStopped)
	case <-ctx.Done():
		return &NotSyncedError{Status: s.status(), Cause: context.Cause(ctx)}
	}
}

// report takes a reflector's state, and logs what is wrong.
func (s *shared) report(ctx context.Context, scope int, r reflector.Report) {
	r.Err = s.advise(scope, r.Err)
	s.mu.Lock()
	s.reports[scope] = r
	switch {
	case r.Err == nil && r.State == reflector.Watching:
		s.since[scope] = time.Time{}
	case r.Err != nil && s.since[scope].IsZero():
		s.since[scope] = time.Now()
	}
	s.mu.Unlock()
	s.sources[scope].Log(ctx, s.cache.log, r)
}

func (s *shared) status() Status {
	objects, own := s.store.Len()
	revision, _ := s.store.Revision()
	st := Status{GVK: s.Place.GVK, Synced: s.isSynced(), Objects: objects, Overlay: own, ResourceVersion: revision, State: "not started"}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel == nil {
		return st
	}
	worst := 0
	for i, r := range s.reports {
		st.Restarts += r.Restarts
		st.Relists += r.Relists
		if r.Err != nil && s.reports[worst].Err == nil || s.reports[worst].Err == nil && r.State < s.reports[worst].State {
			worst = i
		}
	}
	st.State, st.Err = s.reports[worst].State.String(), s.reports[worst].Err
	if st.Err != nil {
		st.Namespace, st.Since = s.sources[worst].Collection.Namespace, s.since[worst]
	}
	return st
}

func (s *shared) metricKind() MetricKind {
	gvr := s.sources[0].Collection.GVK
	var names []string
	if n := s.cache.number; n > 0 {
		names = append(names, fmt.Sprint("view-", n))
	}
	switch s.Place.Form {
	case form.Metadata:
		names = append(names, "metadata")
	case form.Untyped:
		names = append(names, "unstructured")
	}
	return MetricKind{Group: gvr.Group, Version: gvr.Version, Resource: s.resourceName(), Informer: strings.Join(names, "-")}
}
