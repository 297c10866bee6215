// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
)

// CatchUp waits until every informer has had, and shown to its handlers, what
// the server has. It lists the metadata of each watched kind to find out, so it
// is for tests; a cache whose server never rests may never catch up. When ctx
// ends first the error names the kind.
func (c *Cache) CatchUp(ctx context.Context) error {
	for _, s := range c.all() {
		if err := s.catchUp(ctx); err != nil {
			return fmt.Errorf("cache of %s has not caught up: %w", s.Place.GVK.Kind, err)
		}
	}
	return nil
}

// shown is what the handlers of an informer have seen: revisions by key. Its
// events are the last that are called, so what it holds the others have handled.
type shown struct {
	mu        sync.Mutex
	revisions map[client.ObjectKey]string
	moved     chan struct{} // closed by the next event
}

func (v *shown) handle(e Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := client.ObjectKeyFromObject(e.Object)
	if e.Type == Deleted {
		delete(v.revisions, key)
	} else {
		v.revisions[key] = e.Object.GetResourceVersion()
	}
	close(v.moved)
	v.moved = make(chan struct{})
}

func (v *shown) next() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.moved
}

func (v *shown) equals(revisions map[client.ObjectKey]string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Equal(v.revisions, revisions)
}

func (s *shared) catchUp(ctx context.Context) error {
	if err := s.waitForSync(ctx); err != nil {
		return err
	}
	v := &shown{revisions: map[client.ObjectKey]string{}, moved: make(chan struct{})}
	r := newRegistration(s)
	r.handler = v.handle
	s.add(r)
	defer r.Remove()
	for {
		// Taken before the list: an event that the list does not have yet ends
		// the wait below.
		moved := v.next()
		revisions, err := s.revisions(ctx)
		if err != nil {
			return err
		}
		if v.equals(revisions) {
			return nil
		}
		select {
		case <-moved:
		case <-s.cache.stopped:
			return ErrStopped
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// revisions lists what the server has.
func (s *shared) revisions(ctx context.Context) (map[client.ObjectKey]string, error) {
	out := map[client.ObjectKey]string{}
	for _, src := range s.sources {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(src.Collection.GVK.GroupVersion().WithKind(src.Collection.GVK.Kind + "List"))
		selection := client.ListOptions{LabelSelector: s.Labels, FieldSelector: s.Fields}
		selection.Namespace = src.Collection.Namespace
		if err := s.cache.live.List(ctx, list, &selection); err != nil {
			return nil, err
		}
		for i := range list.Items {
			out[client.ObjectKeyFromObject(&list.Items[i])] = list.Items[i].ResourceVersion
		}
	}
	return out, nil
}
