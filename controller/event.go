// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
)

// Event is one change of an object of type T, as predicates and handlers see
// it. The objects are shared: read them, never change them.
type Event[T client.Object] struct {
	Type cache.EventType
	// Object is the new state; of a Deleted event the last known one.
	Object T
	// Old is the state before; set for Updated events only.
	Old T
	// Initial, Resync and Inferred are those of cache.Event.
	Initial, Resync, Inferred bool
}

// typed turns an event of a cache into one of a type; it reports false when the
// cache holds another type.
func typed[T client.Object](e cache.Event) (out Event[T], ok bool) {
	out = Event[T]{Type: e.Type, Initial: e.Initial, Resync: e.Resync, Inferred: e.Inferred}
	if out.Object, ok = e.Object.(T); !ok {
		return out, false
	}
	if e.Old != nil {
		out.Old, ok = e.Old.(T)
	}
	return out, ok
}

// retyped is the inverse of typed for an event whose type is known elsewhere.
func retyped[T client.Object](e Event[client.Object]) (Event[T], bool) {
	return typed[T](cache.Event{Type: e.Type, Object: e.Object, Old: e.Old, Initial: e.Initial, Resync: e.Resync, Inferred: e.Inferred})
}

// causeType names the event for the flight recorder.
func causeType(e cache.Event) trace.CauseType {
	switch {
	case e.Initial:
		return trace.Listed
	case e.Resync:
		return trace.Resynced
	case e.Type == cache.Added:
		return trace.Created
	case e.Type == cache.Deleted:
		return trace.Deleted
	}
	return trace.Updated
}
