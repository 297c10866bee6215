// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// View returns a cache that holds the given kinds in informers of its own, with
// their own options (transform, selection, namespaces), and has all other kinds in
// common with c: for a reader that needs a part of objects which others need whole.
//
// A view lives as long as c: c starts and stops it, waits for its sync and includes
// it in its status. Writes through a [NewClient] of c or of any of its views are seen
// by the reads of all of them.
func (c *Cache) View(kinds ...KindOptions) (*Cache, error) {
	if len(kinds) == 0 {
		return nil, errors.New("make view of cache: name the kinds that it holds itself")
	}
	if c.parent != nil {
		return nil, errors.New("make view of cache: it is a view itself: take the cache that it was made of")
	}
	opts := c.opts
	opts.ByKind = kinds
	v, err := New(c.live, opts)
	if err != nil {
		return nil, fmt.Errorf("make view of cache: %w", err)
	}
	v.parent, v.server = c, c.server
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, fmt.Errorf("make view of cache: %w", ErrStopped)
	}
	v.number = len(c.views) + 1
	if c.ctx != nil {
		if err := v.Start(c.ctx); err != nil {
			return nil, err
		}
	}
	c.views = append(slices.Clip(c.views), v)
	return v, nil
}

// home is the cache that holds a kind: that which a view was made of, unless the view
// holds the kind itself.
func (c *Cache) home(gvk schema.GroupVersionKind) *Cache {
	if _, own := c.kinds[gvk]; c.parent == nil || own {
		return c
	}
	return c.parent
}

// root is the cache that a view was made of, else c.
func (c *Cache) root() *Cache {
	if c.parent != nil {
		return c.parent
	}
	return c
}
