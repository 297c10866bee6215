// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// Handler turns an event into requests, by calling enqueue for each. It runs on
// the goroutine that keeps the cache up to date, so it must be fast; it may read
// from the cache.
type Handler[T client.Object, K comparable] func(ctx context.Context, e Event[T], enqueue func(K))

// Self requests the object of the event.
func Self[T client.Object]() Handler[T, Request] {
	return func(_ context.Context, e Event[T], enqueue func(Request)) { enqueue(RequestFor(e.Object)) }
}

// Map requests what fn returns for the object, and for its old state as well
// when it was updated.
func Map[T client.Object, K comparable](fn func(ctx context.Context, obj T) []K) Handler[T, K] {
	return func(ctx context.Context, e Event[T], enqueue func(K)) {
		for _, k := range fn(ctx, e.Object) {
			enqueue(k)
		}
		var none T
		if client.Object(e.Old) != client.Object(none) && !e.Resync {
			for _, k := range fn(ctx, e.Old) {
				enqueue(k)
			}
		}
	}
}

// Label requests the object that a label of the event's object names, in the
// namespace of the event's object.
func Label[T client.Object](label string) Handler[T, Request] {
	return Map(func(_ context.Context, obj T) []Request {
		name := obj.GetLabels()[label]
		if name == "" {
			return nil
		}
		return []Request{{types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
	})
}

// owner requests the controlling owner of the object when it is of the kind, of
// whatever version. The scope of the kind is known when events come.
func owner(kind schema.GroupKind, scope *scope) Handler[client.Object, Request] {
	enqueueOwner := func(obj client.Object, enqueue func(Request)) {
		ref := metav1.GetControllerOfNoCopy(obj)
		if ref == nil || ref.Kind != kind.Kind || groupOf(ref.APIVersion) != kind.Group {
			return
		}
		key := types.NamespacedName{Name: ref.Name}
		if scope.namespaced {
			key.Namespace = obj.GetNamespace()
		}
		enqueue(Request{key})
	}
	return func(_ context.Context, e Event[client.Object], enqueue func(Request)) {
		enqueueOwner(e.Object, enqueue)
		if e.Old != nil && !e.Resync {
			enqueueOwner(e.Old, enqueue) // it may have changed hands
		}
	}
}

func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return apiVersion
	}
	return gv.Group
}

// scope says whether a kind is namespaced. The controller finds out before it
// starts its sources.
type scope struct{ namespaced bool }

// Request names an object to reconcile. Reconcilers of requests may use any
// other comparable type.
type Request struct {
	types.NamespacedName
}

// String is what messages name the object by, see [client.FormatKey].
func (r Request) String() string { return client.FormatKey(r.NamespacedName) }

// RequestFor is the request that names obj.
func RequestFor(obj client.Object) Request { return Request{client.ObjectKeyFromObject(obj)} }

// Reconciler brings the world in line with what is asked for. Q is a pointer to
// a kind's Go type, or a comparable request type. Reconcile is called by
// several workers, but never twice at once for one object or request.
type Reconciler[Q comparable] interface {
	Reconcile(ctx context.Context, q Q) (Result, error)
}

// Func is a function that is a [Reconciler].
type Func[Q comparable] func(ctx context.Context, q Q) (Result, error)

// Reconcile implements Reconciler.
func (f Func[Q]) Reconcile(ctx context.Context, q Q) (Result, error) { return f(ctx, q) }
