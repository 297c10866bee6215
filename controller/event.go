// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"

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

// Predicate reports whether an event matters. Predicates filter events, not what
// the cache holds: see the options of the cache for that. They run for every
// event and must be fast.
type Predicate[T client.Object] func(e Event[T]) bool

// GenerationChanged drops updates that leave the generation as it was: those of
// the status, and for most kinds those of the metadata.
func GenerationChanged[T client.Object](e Event[T]) bool {
	return e.Type != cache.Updated || e.Old.GetGeneration() != e.Object.GetGeneration()
}

// LabelsChanged drops updates that leave the labels as they were.
func LabelsChanged[T client.Object](e Event[T]) bool {
	return e.Type != cache.Updated || !maps.Equal(e.Old.GetLabels(), e.Object.GetLabels())
}

// AnnotationsChanged drops updates that leave the annotations as they were.
func AnnotationsChanged[T client.Object](e Event[T]) bool {
	return e.Type != cache.Updated || !maps.Equal(e.Old.GetAnnotations(), e.Object.GetAnnotations())
}

// ResourceVersionChanged drops updates that leave metadata.resourceVersion as it was: resyncs.
func ResourceVersionChanged[T client.Object](e Event[T]) bool {
	return e.Type != cache.Updated || e.Old.GetResourceVersion() != e.Object.GetResourceVersion()
}

// Selected keeps events of objects that match, or did match before the update.
func Selected[T client.Object](s labels.Selector) Predicate[T] {
	return func(e Event[T]) bool {
		return s.Matches(labels.Set(e.Object.GetLabels())) ||
			e.Type == cache.Updated && s.Matches(labels.Set(e.Old.GetLabels()))
	}
}

// All keeps what every predicate keeps.
func All[T client.Object](predicates ...Predicate[T]) Predicate[T] {
	return func(e Event[T]) bool {
		for _, p := range predicates {
			if !p(e) {
				return false
			}
		}
		return true
	}
}

// Any keeps what at least one predicate keeps.
func Any[T client.Object](predicates ...Predicate[T]) Predicate[T] {
	return func(e Event[T]) bool {
		for _, p := range predicates {
			if p(e) {
				return true
			}
		}
		return false
	}
}

// Not keeps what the predicate drops.
func Not[T client.Object](p Predicate[T]) Predicate[T] {
	return func(e Event[T]) bool { return !p(e) }
}
