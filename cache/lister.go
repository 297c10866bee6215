// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/client"
)

// Lister reads one kind with its Go type. Its reads follow the same rules as
// those of the Cache.
type Lister[T client.Object] struct {
	cache *Cache
	place form.Place
	blank func() T
}

// NewLister makes a lister of T, which is a pointer to a Go type of the scheme.
// It does not declare the kind: Cache.Informer does.
func NewLister[T client.Object](c *Cache) (*Lister[T], error) {
	var zero T
	switch any(zero).(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return nil, fmt.Errorf("lister of %T: only Go types say their kind; use Cache.List", zero)
	}
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("lister of %s: T must be a pointer to a Go type", t)
	}
	gvk, err := client.KindOf(c.live.Scheme(), reflect.New(t.Elem()).Interface().(T))
	if err != nil {
		return nil, fmt.Errorf("lister: %w", err)
	}
	p := form.Place{GVK: gvk, Form: form.Typed}
	newItem, err := p.NewItem(c.live.Scheme())
	if err != nil {
		return nil, fmt.Errorf("lister: %w", err)
	}
	return &Lister[T]{cache: c.home(gvk), place: p, blank: func() T { return newItem().(T) }}, nil
}

// Get is a private copy of the object.
func (l *Lister[T]) Get(ctx context.Context, key client.ObjectKey) (T, error) {
	obj := l.blank()
	if err := l.cache.Get(ctx, key, obj); err != nil {
		var none T
		return none, err
	}
	return obj, nil
}

// List is private copies, in order of namespace and name.
func (l *Lister[T]) List(ctx context.Context, opts ...client.ListOption) ([]T, error) {
	shared, err := l.All(ctx, opts...)
	if err != nil {
		return nil, err
	}
	var out []T
	for obj := range shared {
		out = append(out, obj.DeepCopyObject().(T))
	}
	return out, nil
}

// All is a read-only view, in order of namespace and name, of the moment of the
// call: the objects are the cache's own. Never change them; DeepCopy what is to
// be changed. It does not read an undeclared kind live: that is an error.
func (l *Lister[T]) All(ctx context.Context, opts ...client.ListOption) (iter.Seq[T], error) {
	o := client.ResolveList(opts)
	l.cache.mu.RLock()
	s := l.cache.informers[l.place]
	l.cache.mu.RUnlock()
	if s == nil || !s.Watches(o.Namespace) {
		missing := ""
		if s != nil {
			missing = o.Namespace
		}
		var zero T
		return nil, fmt.Errorf("list %s: %w", l.place.GVK.Kind, &NotDeclaredError{GVK: l.place.GVK, Namespace: missing, Declare: declaration(typeName(zero))})
	}
	if err := s.waitForSync(ctx); err != nil {
		return nil, fmt.Errorf("list %s: %w", l.place.GVK.Kind, err)
	}
	if o.Live {
		return nil, fmt.Errorf("list %s: a Lister reads the cache: List through a Client to read with client.Live", l.place.GVK.Kind)
	}
	answer, err := s.list(ctx, l.cache.live, &o)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", l.place.GVK.Kind, err)
	}
	found := answer.Found
	if o.Limit > 0 && int64(len(found)) > o.Limit {
		found = found[:o.Limit]
	}
	return func(yield func(T) bool) {
		for _, obj := range found {
			if t, ok := form.Whole(obj).(T); ok && !yield(t) {
				return
			}
		}
	}, nil
}
