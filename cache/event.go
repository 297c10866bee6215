// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"sync"

	"github.com/steer-dev/steer/client"
)

// EventType is what happened to an object.
type EventType uint8

const (
	// Added is an object that the informer had not shown before.
	Added EventType = iota + 1
	// Updated is a new version of an object, or a resync of an unchanged one.
	Updated
	// Deleted is an object that is gone.
	Deleted
)

func (t EventType) String() string {
	switch t {
	case Added:
		return "added"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	}
	return "unknown"
}

// Event is one change, as handlers see it. Its objects are shared with the
// store and with other handlers: read them, never change them.
type Event struct {
	Type EventType
	// Object is the new state; of a Deleted event the last known one.
	Object client.Object
	// Old is the state before, of an Updated event only.
	Old client.Object
	// Initial marks Added events of objects that existed before the handler
	// was added.
	Initial bool
	// Resync marks Updated events without a change: Old and Object are the same.
	Resync bool
	// Inferred marks Deleted events concluded from a list in which the object
	// was missing: the deletion itself was not seen and Object may be older
	// than the object's last state.
	Inferred bool

	// changed is what the handlers of an update share.
	changed *changed
}

// changed is a comparison made once.
type changed struct {
	once sync.Once
	what string
}

// Changed returns what compare says of Old and Object of an Updated event, ""
// for any other. The handlers of an event share one answer, that of the first
// which asks, so that an object that many watch is compared once: ask for the
// same thing everywhere.
func (e *Event) Changed(compare func(before, after any) string) string {
	if e.Type != Updated || e.Resync {
		return ""
	}
	if e.changed == nil { // an event that did not come from a cache
		return compare(e.Old, e.Object)
	}
	e.changed.once.Do(func() { e.changed.what = compare(e.Old, e.Object) })
	return e.changed.what
}

// Handler takes events synchronously, on the goroutine that commits them to the
// store, in order: when it runs, reads already see the change. It must be fast
// (filter and enqueue) and must not wait for other events of the same cache. A
// panic is recovered and logged; the event is then lost to that handler.
type Handler func(Event)

// ResourceEventHandler has the shape of client-go's interface of that name, so
// that its handlers fit without an import. It is called on a goroutine of its
// own, in order, through a bounded buffer: while the buffer is full, changes to
// the same object are merged (delete and re-create stay visible).
type ResourceEventHandler interface {
	OnAdd(obj any, isInInitialList bool)
	OnUpdate(oldObj, newObj any)
	OnDelete(obj any)
}

// DeletedFinalStateUnknown is what a ResourceEventHandler's OnDelete gets for
// an inferred deletion; see Event.Inferred.
type DeletedFinalStateUnknown struct {
	// Key is "namespace/name", or "name" for cluster-scoped kinds.
	Key string
	// Obj is the last known state.
	Obj any
}

// EventHandlerOptions of AddEventHandler.
type EventHandlerOptions struct {
	// Buffer is the number of events that may wait; 0 means 1024.
	Buffer int
	// Tombstone makes the value for inferred deletions. Nil means this
	// package's DeletedFinalStateUnknown; code that expects client-go's type
	// returns that one.
	Tombstone func(key string, obj any) any
}

// Registration is a handler's place in an informer.
type Registration interface {
	// HasSynced says that the handler has been called for everything that
	// existed when it was added and when the informer first synced.
	HasSynced() bool
	// WaitForSync waits for that. When ctx ends first, the error says what the
	// watch is stuck at and what to do about it.
	WaitForSync(ctx context.Context) error
	// Remove takes the handler out: no call of it begins after Remove has
	// returned; one that is under way goes on. Handlers may call it. Idempotent.
	Remove()
	// Wait returns when no call of the handler is under way. The handler itself
	// must not call it.
	Wait()
}
