// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/definition"
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
	p := form.Place{GVK: gvk, Form: form.FormOf(obj)}
	s, err := c.informerFor(ctx, p, key.Namespace, obj)
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", gvk.Kind, key, err)
	}
	if s == nil {
		d, err := c.home(gvk).definitionOf(p)
		if err != nil {
			return nil, fmt.Errorf("get %s %s: %w", gvk.Kind, key, err)
		}
		return nil, c.home(gvk).getServer(ctx, live, &d, key, obj)
	}
	if o.AtLeast != "" && !s.store.Reached(key.Namespace, o.AtLeast) {
		return nil, c.home(gvk).getServer(ctx, live, &s.Definition, key, obj)
	}
	begun := time.Time{}
	found, answer := s.store.Get(key)
	if answer == store.Unknown {
		begun = time.Now()
		found, err = s.settleGet(ctx, live, key)
	}
	switch {
	case err != nil:
	case found == nil:
		err = s.NotFound(key, s.resourceName())
	default:
		if err = form.CopyInto(obj, found); err == nil && reflect.TypeOf(obj) == reflect.TypeOf(found) {
			original = found
		}
	}
	if client.Observed(ctx) {
		notifyGet(ctx, gvk, key, obj, originOf(answer), begun, err)
	}
	return original, err
}

func (c *Cache) list(ctx context.Context, live client.Reader, list client.ObjectList, opts []client.ListOption) error {
	o := client.ResolveList(opts)
	gvk, err := listing.ItemKind(c.live.Scheme(), list)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	p := form.Place{GVK: gvk, Form: form.FormOf(list)}
	if o.Live {
		return c.home(gvk).listServer(ctx, live, p, list, opts)
	}
	s, err := c.informerFor(ctx, p, o.Namespace, list)
	if err != nil {
		return fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	if s == nil {
		return c.home(gvk).listUndeclared(ctx, live, p, list, opts)
	}
	begun := time.Now()
	answer, err := s.list(ctx, live, &o)
	return give(ctx, &answer, gvk, list, &o, begun, err)
}

// list answers a list from the store, or where that does not know, by the server.
func (s *shared) list(ctx context.Context, live client.Reader, o *client.ListOptions) (definition.Answer, error) {
	answer, err := s.Query(s.store, o)
	var unindexed *listing.UnindexedError
	switch {
	case errors.As(err, &unindexed):
		return answer, &NotIndexedError{GVK: s.Place.GVK, Field: unindexed.Field, Declare: fmt.Sprintf("m.Cache().IndexField(&%s{}, %q, func(o client.Object) []string { ... })",
			typeName(s.Place.Sample(s.cache.live.Scheme())), unindexed.Field)}
	case err != nil:
		return answer, err
	case o.AtLeast != "" && !s.store.Reached(o.Namespace, o.AtLeast):
		return s.Ask(ctx, live, o)
	case answer.How == store.Unknown:
		return s.settleList(ctx, live, o)
	}
	return answer, nil
}

// give fills list, and tells the observers.
func give(ctx context.Context, a *definition.Answer, gvk schema.GroupVersionKind, list client.ObjectList, o *client.ListOptions, begun time.Time, err error) error {
	if err == nil {
		next := ""
		if o.Limit > 0 && int64(len(a.Found)) > o.Limit {
			a.Found = a.Found[:o.Limit]
			next = listing.ContinueAfter(a.Found[len(a.Found)-1])
		}
		if err = listing.SetItems(list, a.Found); err == nil {
			list.SetResourceVersion(a.Revision)
			list.SetContinue(next)
			list.SetRemainingItemCount(nil)
			list.GetObjectKind().SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		}
	}
	if err != nil {
		err = fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	if client.Observed(ctx) {
		notify(ctx, begun, &client.Call{
			Verb: client.VerbList, GVK: gvk, Key: client.ObjectKey{Namespace: o.Namespace}, Origin: originOf(a.How),
			ResourceVersion: a.Revision, Items: len(a.Found), Err: err,
		})
	}
	return err
}

// consistent measures a read that asked the server for the sake of own writes.
func (c *Cache) consistent(verb client.Verb, begun time.Time, err error) {
	if c.opts.Metrics != nil {
		c.opts.Metrics.ConsistentRead(verb, time.Since(begun), err)
	}
}

func originOf(answer store.Answer) client.Origin {
	switch answer {
	case store.Merged:
		return client.OriginOverlay
	case store.Unknown:
		return client.OriginServer
	}
	return client.OriginCache
}

func notifyGet(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey, obj client.Object, origin client.Origin, begun time.Time, err error) {
	call := client.Call{Verb: client.VerbGet, GVK: gvk, Key: key, Origin: origin, Err: err}
	if err == nil {
		call.Object, call.ResourceVersion = obj, obj.GetResourceVersion()
	}
	notify(ctx, begun, &call)
}

// notify tells the observers of a call that began then, or now.
func notify(ctx context.Context, begun time.Time, call *client.Call) {
	call.End = time.Now()
	if call.Start = begun; begun.IsZero() {
		call.Start = call.End
	}
	client.Notify(ctx, call)
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
	if s == nil || !s.Watches(namespace) {
		missing := ""
		if s != nil {
			missing = namespace
		}
		return nil, c.undeclared(ctx, p, missing, asked)
	}
	return s, s.waitForSync(ctx)
}

// undeclared is the error, or the one log line, of a read of something that is
// not watched.
func (c *Cache) undeclared(ctx context.Context, p form.Place, namespace string, asked any) error {
	declare := declaration(strings.TrimSuffix(typeName(asked), "List"))
	if c.opts.Undeclared == UndeclaredError || namespace != "" && c.opts.Undeclared == UndeclaredWatch {
		return &NotDeclaredError{GVK: p.GVK, Namespace: namespace, Declare: declare}
	}
	resource := c.resourceOf(ctx, p.GVK)
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
