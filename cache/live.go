// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/cache/internal/definition"
	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/client"
)

// getServer answers a Get by the server.
func (c *Cache) getServer(ctx context.Context, live client.Reader, d *definition.Definition, key client.ObjectKey, obj client.Object) error {
	begun := time.Now()
	found, _, err := d.Fetch(ctx, live, key)
	switch {
	case err != nil:
	case found == nil:
		err = d.NotFound(key, c.resourceOf(ctx, d.Place.GVK))
	default:
		err = form.CopyInto(obj, found)
	}
	if client.Observed(ctx) {
		notifyGet(ctx, d.Place.GVK, key, obj, client.OriginServer, begun, err)
	}
	return err
}

// listServer answers a list with [client.Live]: of all that the server has, as it has it.
// The server does not know the indexes of the cache: they select here.
func (c *Cache) listServer(ctx context.Context, live client.Reader, p form.Place, list client.ObjectList, opts []client.ListOption) error {
	o := client.ResolveList(opts)
	d, err := c.definitionOf(c.indexedPlace(p, &o))
	if err != nil {
		return fmt.Errorf("list %s: %w", p.GVK.Kind, err)
	}
	if own, _ := d.FieldsOf(&o); own == nil {
		return live.List(ctx, list, opts...)
	}
	d.Options = definition.Options{ManagedFields: true}
	return listHere(ctx, live, &d, list, &o)
}

// listUndeclared answers a list of a kind, or of a namespace, that is not watched.
func (c *Cache) listUndeclared(ctx context.Context, live client.Reader, p form.Place, list client.ObjectList, opts []client.ListOption) error {
	o := client.ResolveList(opts)
	d, err := c.definitionOf(c.indexedPlace(p, &o))
	if err != nil {
		return fmt.Errorf("list %s: %w", p.GVK.Kind, err)
	}
	own, _ := d.FieldsOf(&o)
	if own != nil || d.Transform != nil || o.Namespace == "" && len(d.Namespaces) > 0 {
		return listHere(ctx, live, &d, list, &o)
	}
	// The server selects, and makes the pages.
	if err := live.List(ctx, list, append(slices.Clip(opts), client.ListOption(&client.ListOptions{LabelSelector: d.Labels, FieldSelector: d.Fields}))...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			_, _ = d.Prepared(obj) // in place, and without an error: there is no transform
		}
		return nil
	})
}

// listHere answers a list by what the server has, selected here.
func listHere(ctx context.Context, live client.Reader, d *definition.Definition, list client.ObjectList, o *client.ListOptions) error {
	begun := time.Now()
	answer, err := d.Ask(ctx, live, o)
	return give(ctx, &answer, d.Place.GVK, list, o, begun, err)
}

// settleGet is the object at key, of which only the server knows.
func (s *shared) settleGet(ctx context.Context, live client.Reader, key client.ObjectKey) (client.Object, error) {
	begun := time.Now()
	obj, err := s.SettleGet(ctx, live, s.store, key)
	s.cache.consistent(client.VerbGet, begun, err)
	return obj, err
}

// settleList answers a list for which the server must be asked.
func (s *shared) settleList(ctx context.Context, live client.Reader, o *client.ListOptions) (definition.Answer, error) {
	begun := time.Now()
	answer, err := s.SettleList(ctx, live, s.store, o)
	s.cache.consistent(client.VerbList, begun, err)
	return answer, err
}
