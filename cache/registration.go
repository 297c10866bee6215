// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"runtime/debug"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cache/internal/form"
)

// registration is a handler in an informer.
type registration struct {
	informer *shared
	handler  Handler
	// fit gives an event the form that its handler asked for; nil where it has it.
	fit    func(Event) (Event, error)
	buffer *buffer // of a foreign handler; nil for our own
	once   sync.Once
	// shown is closed when the handler has been called for all that was there.
	shown chan struct{}

	mu       sync.Mutex
	removed  bool
	calling  bool          // a call of handler is under way
	returned chan struct{} // closed when it has returned; nil while no goroutine waits
}

// newRegistration returns one without a handler.
func newRegistration(s *shared) *registration {
	return &registration{informer: s, shown: make(chan struct{})}
}

// call shows e to the handler. A panic ends the event, not the watch.
func (r *registration) call(e Event) {
	if r.fit != nil {
		var err error
		if e, err = r.fit(e); err != nil {
			r.informer.cache.log.Error("an event has no metadata; it is lost to its handler", "kind", r.informer.place.GVK.String(), "error", err)
			return
		}
	}
	if r.buffer != nil {
		r.buffer.put(e)
		return
	}
	if !r.beginCall() {
		return
	}
	defer r.endCall()
	defer func() {
		if p := recover(); p != nil {
			r.informer.cache.log.Error("event handler panicked; the event is lost to it",
				"kind", r.informer.place.GVK.String(), "event", e.Type.String(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	r.handler(e)
}

// metadataOnly is an event with the metadata of its objects alone, in copies.
func metadataOnly(e Event) (Event, error) {
	object := &metav1.PartialObjectMetadata{}
	if err := form.CopyInto(object, e.Object); err != nil {
		return e, err
	}
	before := e.Old
	e.Object = object
	switch {
	case before == nil:
	case e.Resync:
		e.Old = object
	default:
		old := &metav1.PartialObjectMetadata{}
		if err := form.CopyInto(old, before); err != nil {
			return e, err
		}
		e.Old, e.changed = old, &changed{} // others compare the whole objects
	}
	return e, nil
}

// beginCall reports false when the handler was removed.
func (r *registration) beginCall() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calling = !r.removed
	return r.calling
}

func (r *registration) endCall() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calling = false
	if r.returned != nil {
		close(r.returned)
		r.returned = nil
	}
}

// HasSynced implements Registration.
func (r *registration) HasSynced() bool {
	if !r.informer.isSynced() {
		return false
	}
	select {
	case <-r.shown:
	default:
		return false
	}
	// The informer is synced inside the commit that called the handlers, so
	// only a buffer can be behind.
	return r.buffer == nil || r.buffer.drained()
}

// WaitForSync implements Registration.
func (r *registration) WaitForSync(ctx context.Context) error {
	if err := r.informer.waitForSync(ctx); err != nil {
		return err
	}
	select {
	case <-r.shown:
	case <-ctx.Done():
		return &NotSyncedError{Status: r.informer.status(), Cause: context.Cause(ctx)}
	}
	if r.buffer != nil && !r.buffer.waitDrained(ctx) {
		return &NotSyncedError{Status: r.informer.status(), Cause: context.Cause(ctx)}
	}
	return nil
}

// Remove implements Registration.
func (r *registration) Remove() {
	r.once.Do(func() {
		r.quit()
		r.informer.remove(r)
	})
}

// Wait implements Registration.
func (r *registration) Wait() {
	if r.buffer != nil {
		if r.isRemoved() {
			<-r.buffer.done
		}
		return
	}
	r.mu.Lock()
	if !r.calling {
		r.mu.Unlock()
		return
	}
	if r.returned == nil {
		r.returned = make(chan struct{})
	}
	returned := r.returned
	r.mu.Unlock()
	<-returned
}

func (r *registration) isRemoved() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.removed
}

// quit keeps the handler from being called again and releases the goroutine that waits
// for room in its buffer.
func (r *registration) quit() {
	r.mu.Lock()
	r.removed = true
	r.mu.Unlock()
	if r.buffer != nil {
		r.buffer.close()
	}
}

// buffer carries events to a foreign handler on a goroutine of its own.
type buffer struct {
	handler   ResourceEventHandler
	tombstone func(key string, obj any) any
	limit     int
	report    func(p any)
	done      chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed sync.Cond
	events  []Event
	busy    bool
	closed  bool
	// everSynced remembers that the buffer ran empty after the informer synced.
	everSynced bool
}

func newBuffer(h ResourceEventHandler, opts EventHandlerOptions, report func(any)) *buffer {
	b := &buffer{handler: h, tombstone: opts.Tombstone, limit: opts.Buffer, report: report, done: make(chan struct{})}
	if b.limit <= 0 {
		b.limit = 1024
	}
	if b.tombstone == nil {
		b.tombstone = func(key string, obj any) any { return DeletedFinalStateUnknown{Key: key, Obj: obj} }
	}
	b.changed.L = &b.mu
	go b.run()
	return b
}

// put appends e. While the buffer is full an update is merged into a waiting
// add or update of the same object, and anything else waits for room.
func (b *buffer) put(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.events) >= b.limit && !b.closed {
		if e.Type == Updated && b.merge(e) {
			return
		}
		b.changed.Wait()
	}
	if b.closed {
		return
	}
	b.events = append(b.events, e)
	b.changed.Broadcast()
}

func (b *buffer) merge(e Event) bool {
	for i := len(b.events) - 1; i >= 0; i-- {
		waiting := &b.events[i]
		if waiting.Object.GetName() != e.Object.GetName() || waiting.Object.GetNamespace() != e.Object.GetNamespace() {
			continue
		}
		if waiting.Type == Deleted {
			return false
		}
		waiting.Object = e.Object
		waiting.Resync = waiting.Resync && e.Resync
		return true
	}
	return false
}

func (b *buffer) run() {
	defer close(b.done)
	for {
		b.mu.Lock()
		b.busy = false
		b.changed.Broadcast()
		for len(b.events) == 0 && !b.closed {
			b.changed.Wait()
		}
		if b.closed {
			b.mu.Unlock()
			return
		}
		events := b.events
		b.events, b.busy = nil, true
		b.mu.Unlock()
		for i := range events {
			b.deliver(events[i])
		}
	}
}

func (b *buffer) deliver(e Event) {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			b.report(p)
		}
	}()
	switch {
	case e.Type == Added:
		b.handler.OnAdd(e.Object, e.Initial)
	case e.Type == Updated:
		b.handler.OnUpdate(e.Old, e.Object)
	case e.Inferred:
		b.handler.OnDelete(b.tombstone(KeyOf(e.Object), e.Object))
	default:
		b.handler.OnDelete(e.Object)
	}
}

// drained says that everything so far has been delivered.
func (b *buffer) drained() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.everSynced = b.everSynced || len(b.events) == 0 && !b.busy
	return b.everSynced
}

// waitDrained waits until everything so far has been delivered, or the buffer is
// closed. It reports false when ctx ends first.
func (b *buffer) waitDrained(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed && ctx.Err() == nil && (len(b.events) > 0 || b.busy) {
		b.changed.Wait()
	}
	return ctx.Err() == nil
}

func (b *buffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}
