// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"runtime/debug"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cache/internal/buffer"
	"github.com/steer-dev/steer/cache/internal/form"
)

// registration is a handler in an informer.
type registration struct {
	informer *shared
	handler  Handler
	// fit gives an event the form that its handler asked for; nil where it has it.
	fit    func(Event) (Event, error)
	buffer *buffer.Buffer[Event] // of a foreign handler; nil for our own
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
			r.informer.cache.log.Error("an event has no metadata; it is lost to its handler", "kind", r.informer.Place.GVK.String(), "error", err)
			return
		}
	}
	if r.buffer != nil {
		r.buffer.Put(e)
		return
	}
	if !r.beginCall() {
		return
	}
	defer r.endCall()
	defer func() {
		if p := recover(); p != nil {
			r.informer.cache.log.Error("event handler panicked; the event is lost to it",
				"kind", r.informer.Place.GVK.String(), "event", e.Type.String(), "panic", p, "stack", string(debug.Stack()))
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
	return r.buffer == nil || r.buffer.Drained()
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
	if r.buffer != nil && !r.buffer.WaitDrained(ctx) {
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
			<-r.buffer.Done()
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
		r.buffer.Close()
	}
}

// newBuffer returns the buffer of a foreign handler, whose panics are reported.
func newBuffer(h ResourceEventHandler, opts EventHandlerOptions, report func(any)) *buffer.Buffer[Event] {
	limit, tombstone := opts.Buffer, opts.Tombstone
	if limit <= 0 {
		limit = 1024
	}
	if tombstone == nil {
		tombstone = func(key string, obj any) any { return DeletedFinalStateUnknown{Key: key, Obj: obj} }
	}
	return buffer.New(limit, mergeUpdate, func(e Event) {
		defer func() {
			if p := recover(); p != nil {
				report(p)
			}
		}()
		switch {
		case e.Type == Added:
			h.OnAdd(e.Object, e.Initial)
		case e.Type == Updated:
			h.OnUpdate(e.Old, e.Object)
		case e.Inferred:
			h.OnDelete(tombstone(KeyOf(e.Object), e.Object))
		default:
			h.OnDelete(e.Object)
		}
	})
}

// mergeUpdate merges an update into a waiting add or update of the same object, and reports
// whether there is one.
func mergeUpdate(events []Event, e Event) bool {
	if e.Type != Updated {
		return false
	}
	for i := len(events) - 1; i >= 0; i-- {
		waiting := &events[i]
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
