// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cache/internal/definition"
	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
)

// NewClient is a Client that reads from c and writes through live. Its writes
// are visible to c's reads at once, unless Options.NoReadYourWrites is set. live
// may be wrapped (interceptors, fences); it must talk to c's server.
func NewClient(live client.Client, c *Cache) client.Client { return &delegating{live, c} }

// OriginalReader is a [client.Reader] that also hands out what it copies; the
// clients of [NewClient] are. It spares who compares an object with what it was
// a second copy.
type OriginalReader interface {
	// GetOriginal is Get, and also returns the object that obj is a copy of. It is
	// shared with the cache: read it, never change it. It is nil when there is
	// none: the answer came from the server, or the cache holds another form.
	GetOriginal(ctx context.Context, key client.ObjectKey, obj client.Object) (client.Object, error)
}

type delegating struct {
	client.Client // live
	cache         *Cache
}

var _ OriginalReader = (*delegating)(nil)

func (d *delegating) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	_, err := d.cache.get(ctx, d.Client, key, obj, opts)
	return err
}

// GetOriginal implements OriginalReader.
func (d *delegating) GetOriginal(ctx context.Context, key client.ObjectKey, obj client.Object) (client.Object, error) {
	return d.cache.get(ctx, d.Client, key, obj, nil)
}

func (d *delegating) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return d.cache.list(ctx, d.Client, list, opts)
}

// seen makes the overlay see the writes made with ctx, and their observers what the
// cache held before.
func (d *delegating) seen(ctx context.Context) context.Context {
	wrote := d.cache.root().wrote
	if d.cache.opts.NoReadYourWrites {
		wrote = func(context.Context, *client.Call) {}
	}
	if !client.Observed(ctx) {
		return client.WithObserver(ctx, wrote)
	}
	return client.WithWriteObserver(ctx, d.cache.root().held, wrote)
}

// held says of a write that is about to be sent what the cache holds of its object,
// where that is the whole of it: not metadata alone, nor without what a transform drops.
func (c *Cache) held(_ context.Context, call *client.Call) {
	for _, s := range c.of(call.GVK) {
		if s.Place.Form == form.Metadata || s.Transform != nil || s.packing != nil || !s.Watches(call.Key.Namespace) {
			continue
		}
		if found, answer := s.store.Get(call.Key); found != nil && answer != store.Unknown {
			call.Before = found
			return
		}
	}
}

func (d *delegating) Create(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	return d.Client.Create(d.seen(ctx), obj, opts...)
}

func (d *delegating) Update(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	return d.Client.Update(d.seen(ctx), obj, opts...)
}

func (d *delegating) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
	return d.Client.Patch(d.seen(ctx), obj, patch, opts...)
}

func (d *delegating) Apply(ctx context.Context, obj any, opts ...client.WriteOption) error {
	return d.Client.Apply(d.seen(ctx), obj, opts...)
}

func (d *delegating) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return d.Client.Delete(d.seen(ctx), obj, opts...)
}

func (d *delegating) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return d.Client.DeleteAllOf(d.seen(ctx), obj, opts...)
}

func (d *delegating) Status() client.StatusWriter { return d.SubResource("status") }

func (d *delegating) SubResource(name string) client.SubResourceClient {
	return delegatingSub{d.Client.SubResource(name), d}
}

type delegatingSub struct {
	client.SubResourceClient
	d *delegating
}

func (s delegatingSub) Create(ctx context.Context, obj, sub client.Object, opts ...client.WriteOption) error {
	return s.SubResourceClient.Create(s.d.seen(ctx), obj, sub, opts...)
}

func (s delegatingSub) Update(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	return s.SubResourceClient.Update(s.d.seen(ctx), obj, opts...)
}

func (s delegatingSub) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
	return s.SubResourceClient.Patch(s.d.seen(ctx), obj, patch, opts...)
}

func (s delegatingSub) Apply(ctx context.Context, obj any, opts ...client.WriteOption) error {
	return s.SubResourceClient.Apply(s.d.seen(ctx), obj, opts...)
}

// wrote feeds the overlay; it is a client.Observer.
func (c *Cache) wrote(_ context.Context, call *client.Call) {
	if !call.Verb.Writes() || call.DryRun {
		return
	}
	for _, s := range c.of(call.GVK) {
		s.wrote(call)
	}
}

// wrote notes what a write has done to s's objects.
func (s *shared) wrote(call *client.Call) {
	if call.Err != nil {
		// The answer may have got lost on its way: then only the server knows.
		var status apierrors.APIStatus
		if errors.As(call.Err, &status) || call.BeforeWire {
			return
		}
		keys := []client.ObjectKey{call.Key}
		if call.Verb == client.VerbDeleteAll {
			keys = s.store.Keys(call.Key.Namespace)
		}
		for _, key := range keys {
			if key.Name != "" { // else it was to be generated
				s.note(store.Own{Key: key, Unknown: true, Lost: true})
			}
		}
		return
	}
	if call.Verb == client.VerbDeleteAll {
		s.deletedAll(call)
		return
	}
	obj, _ := call.Object.(client.Object)
	switch {
	case call.Verb == client.VerbDelete && (obj == nil || isFinal(obj)):
		s.noteDeletion(call, obj)
	case obj == nil || call.SubResource != "" && obj.GetObjectKind().GroupVersionKind() != call.GVK:
		// The write has changed the object, but the answer is something else.
		own := store.Own{Key: call.Key, Unknown: true}
		if obj != nil && call.ResourceVersion != "" {
			own.UID, own.Revision = obj.GetUID(), call.ResourceVersion
		}
		s.note(own)
	case obj.GetDeletionTimestamp() != nil && isFinal(obj):
		s.noteDeletion(call, obj) // the last finalizer is off
	default:
		s.noteObject(obj)
	}
}

// isFinal says that an object in the answer of a write does not exist any more.
func isFinal(obj client.Object) bool {
	grace := obj.GetDeletionGracePeriodSeconds()
	return obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

func (s *shared) noteDeletion(call *client.Call, obj client.Object) {
	own := store.Own{Key: call.Key}
	if obj != nil {
		own.UID, own.Floor = obj.GetUID(), obj.GetResourceVersion()
	} else if status, ok := call.Object.(*metav1.Status); ok && status.Details != nil {
		own.UID = status.Details.UID
	}
	s.note(own)
}

// noteObject notes a new version of an object.
func (s *shared) noteObject(obj client.Object) {
	own := store.Own{Key: client.ObjectKeyFromObject(obj), UID: obj.GetUID(), Revision: obj.GetResourceVersion()}
	switch s.Selects(obj) {
	case definition.Selected:
		own.Object = s.Written(obj)
		own.Unknown = own.Object == nil
	case definition.Unclear:
		own.Unknown = true
	}
	s.note(own)
}

func (s *shared) note(own store.Own) {
	if s.Watches(own.Key.Namespace) {
		s.store.Write(own)
	}
}

// deletedAll notes that objects may be gone: which ones, only the server knows.
// An answer without a list, which no Kubernetes server gives, says nothing of
// objects that the watch has not delivered.
func (s *shared) deletedAll(call *client.Call) {
	if list, ok := call.Object.(*metav1.PartialObjectMetadataList); ok {
		for i := range list.Items {
			obj := &list.Items[i]
			s.note(store.Own{Key: client.ObjectKeyFromObject(obj), UID: obj.GetUID(), Floor: obj.GetResourceVersion(), Unknown: true})
		}
		return
	}
	for _, key := range s.store.Keys(call.Key.Namespace) {
		s.note(store.Own{Key: key, Unknown: true})
	}
}
