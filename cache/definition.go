// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/definition"
	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/client"
)

// definitionOf is the definition of reads of a kind that c holds itself.
func (c *Cache) definitionOf(p form.Place) (definition.Definition, error) {
	newItem, err := p.NewItem(c.live.Scheme())
	return definition.Definition{Place: p, Options: c.optionsFor(p.GVK), NewItem: newItem, Client: c.live, Indexes: func() map[string]func(client.Object) []string { return c.indexesOf(p) }}, err
}

// indexesOf are the indexes of a place, by field.
func (c *Cache) indexesOf(p form.Place) map[string]func(client.Object) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	indexes := make(map[string]func(client.Object) []string, len(c.indexes[p]))
	for field, fn := range c.indexes[p] {
		indexes[field] = fn
	}
	return indexes
}

// indexedPlace is the place in whose form a list is read that is asked for in the form
// of p: one that has an index of its fields, else p.
func (c *Cache) indexedPlace(p form.Place, o *client.ListOptions) form.Place {
	if o.FieldSelector == nil {
		return p
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, f := range p.Form.Covers() {
		other := form.Place{GVK: p.GVK, Form: f}
		if slices.ContainsFunc(o.FieldSelector.Requirements(), func(r fields.Requirement) bool { return c.indexes[other][r.Field] != nil }) {
			return other
		}
	}
	return p
}

// resourceOf is the plural name of a kind, or the kind in small letters where the
// server cannot be asked.
func (c *Cache) resourceOf(ctx context.Context, gvk schema.GroupVersionKind) string {
	if r, err := c.live.Mapper().ForKind(ctx, gvk); err == nil {
		return r.GVR.Resource
	}
	return strings.ToLower(gvk.Kind)
}
