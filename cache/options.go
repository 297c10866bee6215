// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/client"
)

// Undeclared says what a cached read of a kind without an informer does.
type Undeclared uint8

const (
	// UndeclaredLive reads from the server what an informer of the kind would hold, and
	// in a namespace that is not watched what it would hold of that: counted, and logged
	// once per kind with the line that declares it and the RBAC rule it needs.
	UndeclaredLive Undeclared = iota
	// UndeclaredError refuses with a NotDeclaredError.
	UndeclaredError
	// UndeclaredWatch declares the kind and waits for its sync. The watch then
	// lasts as long as the cache.
	UndeclaredWatch
)

// InitialSync says how a reflector gets its first complete state.
type InitialSync uint8

const (
	// SyncAuto streams with WatchList from servers of version 1.37 on, which
	// compress it, and lists in pages from older ones.
	SyncAuto InitialSync = iota
	// SyncList always lists.
	SyncList
	// SyncWatchList always asks for WatchList and lists where it is refused.
	SyncWatchList
)

// Options of New. The zero value works.
type Options struct {
	// Namespaces to watch, one watch each. Empty means all namespaces in one
	// watch. Cluster-scoped kinds are not affected.
	Namespaces []string
	// ByKind overrides per kind.
	ByKind []KindOptions
	// Transform runs on every object before it is stored; see Transform.
	Transform Transform
	// Undeclared reads; see its values.
	Undeclared Undeclared
	// NoReadYourWrites turns the overlay of own writes off.
	NoReadYourWrites bool
	// KeepManagedFields stores metadata.managedFields, which are dropped while
	// decoding otherwise.
	KeepManagedFields bool
	// Compact holds built-in and unstructured objects encoded, in a third to a half
	// of the memory, and decodes them for every read, and for the former state in every
	// update. Go types without a protobuf form are held as they are.
	Compact bool
	// Resync is the period after which handlers see every object again as an
	// update without a change; 0 means never.
	Resync time.Duration
	// InitialSync chooses between lists and WatchList.
	InitialSync InitialSync
	// PageSize of lists; 0 means 500.
	PageSize int64
	// IdleTimeout is how long a watch may stay silent, bookmarks included,
	// before its connection is taken for dead and made anew; 0 means 5 minutes.
	IdleTimeout time.Duration
	// Seed of what spreads retries and the ends of watches; 0 draws one. Two
	// caches with one seed that receive the same events send the same requests.
	Seed uint64
	// DetectMutation checks that shared objects are not changed, and panics when
	// the object is next replaced, or at Stop, after one was. It doubles memory:
	// for tests.
	DetectMutation bool
	// Metrics of informers; nil means none.
	Metrics Metrics
	// Log takes what an operator should know. Nil means slog.Default().
	Log *slog.Logger
}

// KindOptions override Options for the kind of Object.
type KindOptions struct {
	// Object says the kind; for Go types an empty one will do.
	Object client.Object
	// Namespaces, when not nil, replaces Options.Namespaces. A non-nil empty
	// slice means all namespaces.
	Namespaces []string
	// Labels and Fields select what is watched: what does not match does not
	// exist for cached reads. Nil means everything.
	Labels labels.Selector
	Fields fields.Selector
	// Transform, when not nil, replaces Options.Transform.
	Transform Transform
	// KeepManagedFields stores metadata.managedFields of this kind.
	KeepManagedFields bool
	// Compact holds the objects of this kind encoded; see Options.Compact.
	Compact bool
	// Resync, when not 0, replaces Options.Resync.
	Resync time.Duration
	// Remembered are objects known from a former run. They are in the store from
	// the start; those that the first list does not show are deleted then, and
	// handlers are told (an inferred deletion).
	Remembered []client.Object
}

// Transform changes an object before it is stored, to drop what is not needed.
// It owns obj while it runs, must be idempotent (own writes pass through it as
// well), must not change identity, labels, owners or revision, and returns
// obj or another object of the same type.
type Transform func(obj client.Object) (client.Object, error)

// IndexFunc computes the values under which an object is found. It is called
// once per version of an object and must depend on nothing else.
type IndexFunc func(obj client.Object) []string

// Metrics takes what informers measure. Implementations must be fast and safe
// for concurrent use.
type Metrics interface {
	// QueuedItems is the number of changes decoded but not committed.
	QueuedItems(kind MetricKind, n int)
	// StoreResourceVersion is the newest revision in the store.
	StoreResourceVersion(kind MetricKind, revision uint64)
	// Processed is one commit with its handlers.
	Processed(kind MetricKind, events int, took time.Duration)
	// UndeclaredRead is one live read for want of an informer.
	UndeclaredRead(kind MetricKind)
	// ConsistentRead is one Get or List that had to ask the server, because an
	// own write had changed the answer in a way that only the server knew.
	ConsistentRead(verb client.Verb, took time.Duration, err error)
}

// MetricKind labels a metric.
type MetricKind struct {
	Group, Version, Resource string
	// Informer distinguishes the informers of one resource: empty for whole objects
	// in their Go type, "metadata" and "unstructured" for the other forms, and
	// "view-1", "view-1-metadata" and so on for those of the first [Cache.View].
	Informer string
}
