// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"testing"

	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

func TestChunkCacheFindsChunksOfTheSameBytes(t *testing.T) {
	t.Parallel()
	served, version := &registry.Served{}, &resource.Version{}
	as := representation.Representation{Served: served, Version: version}
	one, two, three := &storage.Record{Modified: 1}, &storage.Record{Modified: 2}, &storage.Record{Modified: 3}
	stored := []watch.Frame{{Type: watch.Added, Record: one}, {Type: watch.Modified, Record: two}}
	for _, test := range []struct {
		name   string
		as     representation.Representation
		frames []watch.Frame
		found  bool
	}{
		{"the same frames", as, []watch.Frame{{Type: watch.Added, Record: one}, {Type: watch.Modified, Record: two}}, true},
		{"frames that begin with it", as, []watch.Frame{stored[0], stored[1], {Type: watch.Modified, Record: three}}, true},
		{"fewer frames", as, stored[:1], false},
		{"no frames", as, nil, false},
		{"another record", as, []watch.Frame{stored[0], {Type: watch.Modified, Record: three}}, false},
		{"an equal record elsewhere", as, []watch.Frame{{Type: watch.Added, Record: &storage.Record{Modified: 1}}, stored[1]}, false},
		{"another type", as, []watch.Frame{stored[0], {Type: watch.Deleted, Record: two}}, false},
		{"another revision", as, []watch.Frame{stored[0], {Type: watch.Modified, Record: two, Revision: 9}}, false},
		{"another order", as, []watch.Frame{stored[1], stored[0]}, false},
		{"another media type", representation.Representation{Choice: negotiation.Choice{Media: negotiation.Protobuf}, Served: served, Version: version}, stored, false},
		{"another shape", representation.Representation{Choice: negotiation.Choice{Shape: negotiation.Metadata}, Served: served, Version: version}, stored, false},
		{"another resource", representation.Representation{Served: &registry.Served{}, Version: version}, stored, false},
		{"another version", representation.Representation{Served: served, Version: &resource.Version{Name: "v2"}}, stored, false},
	} {
		var cache chunkCache
		cache.add(&chunk{as: as, frames: stored, bytes: []byte("encoded")})
		if got := cache.find(test.as, test.frames); (got != nil) != test.found {
			t.Errorf("%s: found %v, want %v", test.name, got != nil, test.found)
		}
	}
}

func TestChunkCacheForgetsTheOldestChunk(t *testing.T) {
	t.Parallel()
	var cache chunkCache
	frames := make([][]watch.Frame, 2*cachedChunks)
	for i := range frames {
		frames[i] = []watch.Frame{{Type: watch.Added, Record: &storage.Record{}}}
		cache.add(&chunk{frames: frames[i]})
	}
	for i := range frames {
		if got, want := cache.find(representation.Representation{}, frames[i]) != nil, i >= cachedChunks; got != want {
			t.Errorf("chunk %d of %d: cached is %v, want %v", i, len(frames), got, want)
		}
	}
}

func TestChunkCacheIsEmptyAtFirst(t *testing.T) {
	t.Parallel()
	var cache chunkCache
	if got := cache.find(representation.Representation{}, []watch.Frame{{}}); got != nil {
		t.Errorf("found %v", got)
	}
}
