// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client talks to any Kubernetes API server: typed, unstructured and
// metadata-only objects through one set of verbs.
//
//	c, err := client.New(cfg, client.Options{Scheme: scheme})
//	var jobs batchv1.JobList
//	err = c.List(ctx, &jobs, client.InNamespace("default"), client.MatchingLabels{"app": "web"})
//
// What an argument is decides how it travels. A Go type registered in the
// scheme is typed: kinds whose Go type has a protobuf form, as built-in ones
// have, use it where the server does, all others JSON.
// *unstructured.Unstructured carries any kind without a Go type and must name
// its apiVersion and kind. *metav1.PartialObjectMetadata asks the server for
// metadata only and must name its kind as well. Whatever a call returns knows
// its apiVersion and kind.
//
// Everything here is live: each read is a request. Package cache wraps a
// Client so that reads come from a local copy.
//
// A Client is safe for concurrent use. The objects passed to it are not:
// a call owns its arguments until it returns.
//
// Sub-packages: wire (requests, retries, errors of the API server), codec
// (bytes to objects), mapping (discovery, kinds to resources), listwatch (what
// package cache needs of a Client), interceptor (fault injection around any
// Client), strategic (strategic merge patches, linked only when imported).
package client

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client/mapping"
)

// Client is every verb of a Kubernetes API server.
type Client interface {
	Reader
	Writer
	Watcher

	// Status writes the status subresource.
	Status() StatusWriter
	// SubResource reads and writes the named subresource, such as "scale".
	SubResource(name string) SubResourceClient

	// Scheme is the mapping between Go types and kinds.
	Scheme() *runtime.Scheme
	// Mapper finds the resource of a kind by discovery.
	Mapper() *mapping.Mapper
}

// Reader gets and lists.
type Reader interface {
	// Get reads one object into obj, whose type says what is read. The error
	// of an object that does not exist satisfies apierrors.IsNotFound.
	Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error
	// List reads objects into list. Without Limit all of them are returned.
	List(ctx context.Context, list ObjectList, opts ...ListOption) error
}

// Writer changes objects. After a successful call obj is what the server
// stored, except after Delete, which leaves obj alone.
type Writer interface {
	Create(ctx context.Context, obj Object, opts ...WriteOption) error
	// Update replaces the object. With a resourceVersion it fails with a
	// conflict (apierrors.IsConflict) when the object has changed since.
	Update(ctx context.Context, obj Object, opts ...WriteOption) error
	Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error
	// Apply is server-side apply; it needs a FieldOwner (an option here, or
	// Options.FieldOwner). obj is an Object or an apply configuration
	// (runtime.ApplyConfiguration). A typed object is sent without its zero
	// values: what is zero in Go is not claimed.
	Apply(ctx context.Context, obj any, opts ...WriteOption) error
	Delete(ctx context.Context, obj Object, opts ...DeleteOption) error
	// DeleteAllOf deletes every object of obj's kind that the options select.
	DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error
}

// Watcher streams changes.
type Watcher interface {
	// Watch streams changes of the kind of list's items, until ctx ends, Stop
	// is called or the server closes the stream. It does not resume: package
	// cache does.
	Watch(ctx context.Context, list ObjectList, opts ...ListOption) (watch.Interface, error)
}

// StatusWriter writes the status subresource.
type StatusWriter interface {
	Update(ctx context.Context, obj Object, opts ...WriteOption) error
	Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error
	Apply(ctx context.Context, obj any, opts ...WriteOption) error
}

// SubResourceClient reads and writes one subresource of obj. Where the
// subresource has a type of its own (scale, eviction, token), sub carries it;
// Update takes it through WithSubResourceBody.
type SubResourceClient interface {
	StatusWriter
	Get(ctx context.Context, obj, sub Object, opts ...GetOption) error
	Create(ctx context.Context, obj, sub Object, opts ...WriteOption) error
}
