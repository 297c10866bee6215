// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"context"
	"slices"
	"sync"

	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/watch"
)

// cachedChunks is how many chunks are cached: enough for the watches that wake at one
// time, if they use few representations.
const cachedChunks = 8

// chunkCache holds the encoded event sequences that were sent last. Watches of one
// resource that wake at the same time mostly send the same events in the same
// representation and share the bytes. Its zero value is ready; it is safe for
// concurrent use.
type chunkCache struct {
	mu   sync.Mutex
	last [cachedChunks]*chunk
	next int
}

// chunk is an encoded sequence of watch events. It is immutable.
type chunk struct {
	as     representation.Representation
	frames []watch.Frame
	bytes  []byte
	sizes  []int // of the encoded objects, in bytes
}

// find returns a cached chunk that encodes a prefix of frames, or nil. A chunk of other
// events differs in its first frame, so that the whole length, some hundred comparisons of
// pointers, is compared of the chunk that is found alone.
func (c *chunkCache) find(as representation.Representation, frames []watch.Frame) *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.last {
		if k != nil && len(k.frames) <= len(frames) && k.as == as && slices.EqualFunc(k.frames, frames[:len(k.frames)], sameFrame) {
			return k
		}
	}
	return nil
}

func sameFrame(a, b watch.Frame) bool {
	return a.Record == b.Record && a.Type == b.Type && a.Revision == b.Revision
}

func (c *chunkCache) add(k *chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[c.next%cachedChunks] = k
	c.next++
}

// chunk writes the events of one chunk, encoded here or by another watch, and returns
// how many frames it covers; 0 if they must be written one by one. Frames are those of
// changes.
func (o *writer) chunk(ctx context.Context, frames []watch.Frame) (int, error) {
	if o.socket != nil || o.req.Choice.Shape == negotiation.Table {
		return 0, nil // WebSocket messages are framed one by one, and only the first table has column definitions
	}
	k := o.server.chunks.find(o.req.Representation, frames)
	if k == nil {
		if k = o.encode(ctx, frames); k == nil {
			return 0, nil
		}
		o.server.chunks.add(k)
	}
	if _, err := o.w.Write(k.bytes); err != nil {
		return 0, errDisconnected
	}
	o.pending = true
	o.sizes = append(o.sizes, k.sizes...)
	return len(k.frames), o.flush()
}

// encode makes a chunk of the first frames; nil if one of them cannot be encoded.
func (o *writer) encode(ctx context.Context, frames []watch.Frame) *chunk {
	objects, size := make([]wire.Pieces, 0, len(frames)), 0
	k := &chunk{as: o.req.Representation, sizes: make([]int, 0, len(frames))}
	for i := range frames {
		object, err := o.object(ctx, &frames[i])
		if err != nil {
			return nil
		}
		const around = 64 // an upper bound for the bytes around an object
		objects, size = append(objects, object), size+object.Len()+around
		k.sizes = append(k.sizes, object.Len())
		if size > flushAt {
			break
		}
	}
	k.frames = slices.Clone(frames[:len(objects)])
	k.bytes = make([]byte, 0, size)
	for i, object := range objects {
		k.bytes = o.appendFrame(k.bytes, frames[i].Type, object)
	}
	return k
}
