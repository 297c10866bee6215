// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

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

// source is one collection of the API server, as reflectors follow it.
type source struct {
	mapper *mapping.Mapper
	server *server
	sync   InitialSync
	index  int        // among the sources of the informer
	random *rand.Rand // the reflector's alone
	// collection has its Resource after Resolve; the reflector's alone.
	collection listwatch.Collection

	resourceName atomic.Pointer[string]
}

var _ reflector.Source = (*source)(nil)

func (s *source) Resolve(ctx context.Context) (watchList bool, err error) {
	if s.collection.Resource, err = s.mapper.ForKind(ctx, s.collection.GVK); err != nil {
		return false, err
	}
	s.resourceName.Store(&s.collection.Resource.GVR.Resource)
	if !s.collection.Resource.Namespaced && s.index > 0 {
		return false, reflector.ErrCovered
	}
	switch s.sync {
	case SyncWatchList:
		return true, nil
	case SyncAuto:
		return s.server.compressesWatchList(ctx), nil
	}
	return false, nil
}

func (s *source) List(ctx context.Context, cont string, limit int64) (listwatch.Page, error) {
	return s.server.source.OpenList(ctx, &s.collection, listwatch.ListOptions{Limit: limit, Continue: cont})
}

func (s *source) Watch(ctx context.Context, revision string, initial bool) (listwatch.Events, error) {
	return s.server.source.OpenWatch(ctx, &s.collection, listwatch.WatchOptions{
		ResourceVersion: revision, SendInitialEvents: initial,
		// Watches end now and then anyway; different lengths spread their renewal.
		Timeout: time.Duration(300+s.random.IntN(300)) * time.Second,
	})
}

// objects returns newItem as a function of runtime.Objects.
func objects(newItem func() client.Object) func() runtime.Object {
	return func() runtime.Object { return newItem() }
}

// server is the API server of a cache and of its views. It reads the version once.
type server struct {
	source listwatch.Source
	// turn holds one token: its holder requests the version, the others wait for the
	// answer or for the end of their context.
	turn  chan struct{}
	known bool
	minor int
}

// compressesWatchList reports whether streaming the initial state is the better way.
func (v *server) compressesWatchList(ctx context.Context) bool {
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
