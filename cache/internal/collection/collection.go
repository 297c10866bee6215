// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collection follows one collection of the API server: it is the source of a
// reflector, chooses how the initial state is read, and says what to do about errors.
package collection

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/cache/internal/reflector"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/listwatch"
	"github.com/steer-dev/steer/client/mapping"
)

// Sync is how a source reads the initial state.
type Sync uint8

// The ways to read it, in the order of those of cache.InitialSync.
const (
	// Auto streams it from servers that compress the stream, and lists it from others.
	Auto Sync = iota
	// List lists it.
	List
	// WatchList streams it.
	WatchList
)

// Source is one collection of the API server, as reflectors follow it.
type Source struct {
	mapper *mapping.Mapper
	server *Server
	sync   Sync
	index  int
	// Random is the reflector's alone, and set before it starts.
	Random *rand.Rand
	// Collection has its Resource after Resolve; the reflector's alone.
	Collection listwatch.Collection

	resource atomic.Pointer[string]
	logged   string // the error of this source alone that was logged last; the reflector's alone
}

var _ reflector.Source = (*Source)(nil)

// NewSource returns a source of a collection without Resource. index is its place among the
// sources of its informer.
func NewSource(server *Server, mapper *mapping.Mapper, sync Sync, index int, c listwatch.Collection) *Source {
	return &Source{mapper: mapper, server: server, sync: sync, index: index, Collection: c}
}

// Resolve implements [reflector.Source].
func (s *Source) Resolve(ctx context.Context) (watchList bool, err error) {
	if s.Collection.Resource, err = s.mapper.ForKind(ctx, s.Collection.GVK); err != nil {
		return false, err
	}
	s.resource.Store(&s.Collection.Resource.GVR.Resource)
	if !s.Collection.Resource.Namespaced && s.index > 0 {
		return false, reflector.ErrCovered
	}
	return s.sync == WatchList || s.sync == Auto && s.server.compressesWatchList(ctx), nil
}

// List implements [reflector.Source].
func (s *Source) List(ctx context.Context, cont string, limit int64) (listwatch.Page, error) {
	return s.server.source.OpenList(ctx, &s.Collection, listwatch.ListOptions{Limit: limit, Continue: cont})
}

// Watch implements [reflector.Source].
func (s *Source) Watch(ctx context.Context, revision string, initial bool) (listwatch.Events, error) {
	return s.server.source.OpenWatch(ctx, &s.Collection, listwatch.WatchOptions{
		ResourceVersion: revision, SendInitialEvents: initial,
		// Watches end now and then anyway; different lengths spread their renewal.
		Timeout: time.Duration(300+s.Random.IntN(300)) * time.Second,
	})
}

// ResourceName returns the plural name of the resource, empty before it is resolved. It is safe
// for concurrent use.
func (s *Source) ResourceName() string {
	if name := s.resource.Load(); name != nil {
		return *name
	}
	return ""
}

// Objects returns newItem as a function of runtime.Objects.
func Objects(newItem func() client.Object) func() runtime.Object {
	return func() runtime.Object { return newItem() }
}

// Server is the API server of a cache and of its views. It reads the version once.
type Server struct {
	source listwatch.Source
	// turn holds one token: its holder requests the version, the others wait for the
	// answer or for the end of their context.
	turn  chan struct{}
	known bool
	minor int

	outage outage
}

// NewServer returns the server that a source reads.
func NewServer(source listwatch.Source) *Server {
	return &Server{source: source, turn: make(chan struct{}, 1)}
}

// compressesWatchList reports whether streaming the initial state is the better way.
func (v *Server) compressesWatchList(ctx context.Context) bool {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return false
	}
	if !v.known {
		minor, err := v.source.ServerMinor(ctx)
		if err != nil {
			return false // not worth a failure: lists work everywhere
		}
		v.minor, v.known = minor, true
	}
	return v.minor >= 37
}
