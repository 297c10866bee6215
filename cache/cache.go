// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps local copies of what an operator watches: reflectors fill
// indexed stores, handlers are told of changes, and reads are answered from
// memory.
package cache

import (
	"context"
	"errors"

	"github.com/steer-dev/steer/client"
)

var errNotYet = errors.New("package cache is not implemented yet")

// Cache holds the informers of one API server.
//
// Lifecycle: Start begins the watches of every declared kind and returns;
// kinds declared later start at once. WaitForSync waits until every declared
// kind has synced. Stop, or the end of Start's context, ends all watches and
// handlers; Stop returns when the last goroutine has. Start and Stop are
// idempotent, and a stopped cache stays stopped.
type Cache struct {
	live *client.Direct
	opts Options
}

// New makes a cache of the server that live talks to. Nothing is sent.
func New(live *client.Direct, opts Options) (*Cache, error) {
	return &Cache{live: live, opts: opts}, nil
}

// Start begins the watches. It does not wait for them.
func (c *Cache) Start(ctx context.Context) error { return errNotYet }

// WaitForSync waits until every declared kind has synced; the error of a ctx
// that ends first says which kinds have not, why, and what to do.
func (c *Cache) WaitForSync(ctx context.Context) error { return errNotYet }

// Stop ends everything and returns when it has ended.
func (c *Cache) Stop() {}

// Informer implements Informers.
func (c *Cache) Informer(obj client.Object) (Informer, error) { return nil, errNotYet }

// Informers is the status of every informer, in order of kind.
func (c *Cache) Informers() []Status { return nil }

// Get implements client.Reader: a private copy from the local store.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return errNotYet
}

// List implements client.Reader: private copies from the local store.
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return errNotYet
}

// IndexField makes client.MatchingFields{field: value} work for cached reads of
// obj's kind. It may be called at any time, once per field.
func (c *Cache) IndexField(obj client.Object, field string, fn IndexFunc) error { return errNotYet }

// NewClient is a Client that reads from c and writes through live. Its writes
// are visible to c's reads at once, unless Options.NoReadYourWrites is set. live
// may be wrapped (interceptors, fences); it must talk to c's server.
func NewClient(live client.Client, c *Cache) client.Client { return live }
