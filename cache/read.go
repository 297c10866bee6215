// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/cache/internal/listing"
	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
)

type awaitStart struct{}

// AwaitStart returns a context in which cached reads before Start wait for it, until
// the context ends; in others they are [ErrNotStarted]. It is for what may be called
// while the process starts, as the handlers of a server are.
func AwaitStart(ctx context.Context) context.Context {
	return context.WithValue(ctx, awaitStart{}, true)
}

// Get implements client.Reader: a private copy from the local store. Own writes
// are visible if they went through a Client of NewClient.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	_, err := c.get(ctx, c.live, key, obj, opts)
	return err
}

// List implements client.Reader: private copies from the local store, in order
// of namespace and name. Field selectors know metadata.name,
// metadata.namespace and the fields of IndexField.
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.list(ctx, c.live, list, opts)
}

// get fills obj and returns what it was copied from, if that can be shared.
func (c *Cache) get(ctx context.Context, live client.Reader, key client.ObjectKey, obj client.Object, opts []client.GetOption) (original client.Object, err error) {
	var o client.GetOptions
	if len(opts) > 0 {
		o = client.ResolveGet(opts)
	}
	if o.Live {
		return nil, live.Get(ctx, key, obj, opts...)
	}
	gvk, err := client.KindOf(c.live.Scheme(), obj)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	s, err := c.informerFor(ctx, form.Place{GVK: gvk, Form: form.FormOf(obj)}, key.Namespace, obj)
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", gvk.Kind, key, err)
	}
	if s == nil || o.AtLeast != "" && !s.store.Reached(key.Namespace, o.AtLeast) {
		return nil, live.Get(ctx, key, obj, opts...)
	}
	found, answer := s.store.Get(key)
	switch {
	case answer == store.Unknown:
		return nil, s.getLive(ctx, live, key, obj)
	case found == nil:
		err = s.notFound(key)
	default:
		if err = form.CopyInto(obj, found); err == nil && reflect.TypeOf(obj) == reflect.TypeOf(found) {
			original = found
		}
	}
	if client.Observed(ctx) {
		c.observe(ctx, client.VerbGet, gvk, key, answer, err, obj, "", 0)
	}
	return original, err
}

func (c *Cache) list(ctx context.Context, live client.Reader, list client.ObjectList, opts []client.ListOption) error {
	o := client.ResolveList(opts)
	if o.Live {
		return live.List(ctx, list, opts...)
	}
	gvk, err := listing.ItemKind(c.live.Scheme(), list)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	s, err := c.informerFor(ctx, form.Place{GVK: gvk, Form: form.FormOf(list)}, o.Namespace, list)
	if err != nil {
		return fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	if s == nil || o.AtLeast != "" && !s.store.Reached(o.Namespace, o.AtLeast) {
		return live.List(ctx, list, opts...)
	}
	mark := s.store.Mark()
	revision, _ := s.store.Revision()
	found, answer, err := s.find(&o)
	if err != nil {
		return fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	if answer == store.Unknown && !listing.ServerSelects(&o) {
		if err = s.settle(ctx, live, list, o.Namespace); err != nil {
			return err
		}
		if found, answer, err = s.find(&o); err != nil {
			return fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
	}
	if answer == store.Unknown {
		begun := time.Now()
		err := live.List(ctx, list, append(slices.Clip(opts), client.ListOption(client.Live))...)
		c.consistent(client.VerbList, begun, err)
		if err != nil {
			return err
		}
		s.store.ResolveList(o.Namespace, mark, list.GetResourceVersion())
		return nil
	}
	next := ""
	if o.Limit > 0 && int64(len(found)) > o.Limit {
		found = found[:o.Limit]
		next = listing.ContinueAfter(found[len(found)-1])
	}
	if err := listing.SetItems(list, found); err != nil {
		return fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	list.SetResourceVersion(revision)
	list.SetContinue(next)
	list.SetRemainingItemCount(nil)
	list.GetObjectKind().SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if client.Observed(ctx) {
		c.observe(ctx, client.VerbList, gvk, client.ObjectKey{Namespace: o.Namespace}, answer, nil, nil, revision, len(found))
	}
	return nil
}

// consistent measures a read that asked the server for the sake of own writes.
func (c *Cache) consistent(verb client.Verb, begun time.Time, err error) {
	if c.opts.Metrics != nil {
		c.opts.Metrics.ConsistentRead(verb, time.Since(begun), err)
	}
}

func (c *Cache) observe(ctx context.Context, verb client.Verb, gvk schema.GroupVersionKind, key client.ObjectKey, answer store.Answer, err error, obj client.Object, revision string, items int) {
	now := time.Now()
	call := client.Call{Verb: verb, GVK: gvk, Key: key, Origin: client.OriginCache, ResourceVersion: revision, Items: items, Err: err, Start: now, End: now}
	if answer == store.Merged {
		call.Origin = client.OriginOverlay
	}
	if obj != nil && err == nil {
		call.Object, call.ResourceVersion = obj, obj.GetResourceVersion()
	}
	client.Notify(ctx, &call)
}

// informerFor is the synced informer that answers for p in namespace; nil means
// that the read is to be live.
func (c *Cache) informerFor(ctx context.Context, p form.Place, namespace string, asked any) (*shared, error) {
	if home := c.home(p.GVK); home != c {
		return home.informerFor(ctx, p, namespace, asked)
	}
	c.mu.RLock()
	s := c.findLocked(p)
	c.mu.RUnlock()
	if s == nil && c.opts.Undeclared == UndeclaredWatch {
		// The hold is never closed: the watch lasts as long as the cache.
		h, err := c.Informer(p.Sample(c.live.Scheme()))
		if err != nil {
			return nil, err
		}
		s = h.(*hold).s
	}
	if s == nil || !s.watches(namespace) {
		missing := ""
		if s != nil {
			missing = namespace
		}
		return nil, c.undeclared(ctx, p, missing, asked)
	}
	return s, s.waitForSync(ctx)
}

// watches says that namespace is part of what s watches. A list of all
// namespaces by a cache of some gives what those hold.
func (s *shared) watches(namespace string) bool {
	return namespace == "" || len(s.options.namespaces) == 0 || slices.Contains(s.options.namespaces, namespace)
}

// undeclared is the error, or the one log line, of a read of something that is
// not watched.
func (c *Cache) undeclared(ctx context.Context, p form.Place, namespace string, asked any) error {
	declare := declaration(strings.TrimSuffix(typeName(asked), "List"))
	if c.opts.Undeclared == UndeclaredError || namespace != "" && c.opts.Undeclared == UndeclaredWatch {
		return &NotDeclaredError{GVK: p.GVK, Namespace: namespace, Declare: declare}
	}
	resource := strings.ToLower(p.GVK.Kind) + "s"
	if r, err := c.live.Mapper().ForKind(ctx, p.GVK); err == nil {
		resource = r.GVR.Resource
	}
	if m := c.opts.Metrics; m != nil {
		m.UndeclaredRead(MetricKind{Group: p.GVK.Group, Version: p.GVK.Version, Resource: resource})
	}
	c.mu.Lock()
	told := c.told[p]
	c.told[p] = true
	c.mu.Unlock()
	if !told {
		c.log.InfoContext(ctx, "reads of this kind go to the API server: the cache does not watch it",
			"kind", p.GVK.String(), "namespace", namespace, "declare", declare, "rbac", rbacRule("ClusterRole", p.GVK.Group, resource))
	}
	return nil
}

// find answers a list from the store.
func (s *shared) find(o *client.ListOptions) ([]client.Object, store.Answer, error) {
	q, err := listing.Query(s.store, o)
	var unindexed *listing.UnindexedError
	if errors.As(err, &unindexed) {
		err = &NotIndexedError{GVK: s.place.GVK, Field: unindexed.Field, Declare: fmt.Sprintf("m.Cache().IndexField(&%s{}, %q, func(o client.Object) []string { ... })",
			typeName(s.place.Sample(s.cache.live.Scheme())), unindexed.Field)}
	}
	if err != nil {
		return nil, store.Committed, err
	}
	found, answer := s.store.Select(q, nil)
	return found, answer, nil
}
