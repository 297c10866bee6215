// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
)

// Informers hands out informers. *Cache implements it; controllers ask for no
// more than this.
type Informers interface {
	// Informer declares the kind of obj, which says how it is held as well
	// (typed, unstructured, metadata-only), and returns a hold on its informer.
	// Where the kind is held whole already, one of metadata shares that watch, and
	// its handlers get metadata.
	// It does not wait for anything: the kind may not even exist yet. The watch
	// starts with the cache, or at once when that is running, and lasts until
	// every hold is closed.
	Informer(obj client.Object) (Informer, error)
}

// Informer is a hold on the local copy of one kind. Several holds share one
// watch.
type Informer interface {
	// AddHandler registers fn. It first gets an Added event for each object
	// that is there already: before AddHandler returns, or, while the informer is
	// calling handlers, right after the events at hand. Handlers may call it.
	AddHandler(fn Handler) Registration
	// AddEventHandler registers a handler of client-go's shape.
	AddEventHandler(h ResourceEventHandler, opts EventHandlerOptions) Registration
	// HasSynced says that the store has held a complete list.
	HasSynced() bool
	// WaitForSync waits for that. When ctx ends first, the error says what the
	// watch is stuck at and what to do about it.
	WaitForSync(ctx context.Context) error
	// Status is a snapshot for pages, metrics and messages.
	Status() Status
	// Close gives the hold back and removes the handlers added through it. The
	// last one ends the watch. Handlers may call it. Idempotent.
	Close()
}

// Status of an informer.
type Status struct {
	GVK       schema.GroupVersionKind
	Namespace string // of the first watch that fails, else empty
	// State is the reflector's, in words: "waiting for kind", "listing",
	// "watching", "backing off", ... With several namespaces the one furthest
	// from watching.
	State   string
	Synced  bool
	Objects int
	// Overlay is the number of own writes the watch has not delivered yet.
	Overlay int
	// ResourceVersion is the newest revision seen, of the watch furthest back.
	ResourceVersion string
	// Err is why the watch fails, with advice; nil while it works.
	Err error
	// Since is when that trouble began; zero while all is well.
	Since time.Time
	// Restarts and Relists count since the start.
	Restarts, Relists int
}
