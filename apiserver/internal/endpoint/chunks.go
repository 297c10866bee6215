// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"slices"
	"sync"

	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/watch"
)

// keepChunks is how many chunks are kept: those of a moment, if few forms are
// watched.
const keepChunks = 8

// chunks are what watches that gather have been sent last: others that wake at the
// same moment are mostly sent the same. Its zero value is ready; it is safe for
// concurrent use.
type chunks struct {
	mu   sync.Mutex
	last [keepChunks]*chunk
	next int
}

// chunk is a piece of a watch. Nobody changes it.
type chunk struct {
	form   form
	frames []watch.Frame
	bytes  []byte
	sizes  []int // of the objects
}

// form is how watches show objects.
type form struct {
	choice  negotiate.Choice
	served  *registry.Served
	version *resource.Version
}

// find returns the chunk with which frames begin, nil for none.
func (c *chunks) find(f form, frames []watch.Frame) *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.last {
		if k != nil && len(k.frames) <= len(frames) && k.form == f && slices.EqualFunc(k.frames, frames[:len(k.frames)], sameFrame) {
			return k
		}
	}
	return nil
}

func sameFrame(a, b watch.Frame) bool {
	return a.Record == b.Record && a.Type == b.Type && a.Revision == b.Revision
}

func (c *chunks) add(k *chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[c.next%keepChunks] = k
	c.next++
}

// chunk sends as many of the frames as go together and have been sent, or will be,
// to others as well, and returns how many. The frames are those of changes.
func (o *watchWriter) chunk(ctx context.Context, frames []watch.Frame) (int, error) {
	if o.socket != nil || o.choice.Shape == negotiate.Table {
		return 0, nil // messages are apart, and only the first table has columns
	}
	f := form{o.choice, o.req.Served, o.req.Version}
	k := o.h.chunks.find(f, frames)
	if k == nil {
		if k = o.encode(ctx, f, frames); k == nil {
			return 0, nil
		}
		o.h.chunks.add(k)
	}
	if _, err := o.w.Write(k.bytes); err != nil {
		return 0, err
	}
	o.pending = true
	o.sizes = append(o.sizes, k.sizes...)
	return len(k.frames), o.flush()
}

// encode makes a chunk of the first frames; nil if one of them cannot be shown.
func (o *watchWriter) encode(ctx context.Context, f form, frames []watch.Frame) *chunk {
	objects, size := make([]wire.Rope, 0, len(frames)), 0
	k := &chunk{form: f, sizes: make([]int, 0, len(frames))}
	for i := range frames {
		object, err := o.object(ctx, &frames[i])
		if err != nil {
			return nil
		}
		const around = 64 // more than what is around an object
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
