// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/queue"
)

// References watches a kind that the reconciled objects name, such as the Secrets
// of their specs, and requests the objects that name the one which changed:
//
//	controller.References[*corev1.Secret](func(w *v1.Web) []client.ObjectKey {
//		return []client.ObjectKey{{Name: w.Spec.SecretName}}
//	})
//
// names returns what an object names; a key without a namespace is in that of the
// object, or cluster-scoped. It is called once per version of an object, must be
// fast and must depend on the object alone. The index of who names what is kept by
// the controller: no index of the cache has to be declared.
func References[R, T client.Object](names func(obj T) []client.ObjectKey) ObjectSource {
	return objectSource(func(sh *shared, deps Deps) (Source[Request], error) {
		if got := reflect.TypeFor[T](); reflect.TypeOf(sh.example) != got {
			return nil, fmt.Errorf("References[%v]: the function takes a %v, which Reconcile does not", reflect.TypeFor[R](), got)
		}
		obj, err := newObject[R]()
		if err != nil {
			return nil, err
		}
		r := &references[T]{names: names, users: map[client.ObjectKey]map[Request]bool{}, used: map[Request][]client.ObjectKey{}}
		if r.Source, err = Kind(deps.Informers, obj, Map(func(_ context.Context, obj R) []Request { return r.of(obj) })); err != nil {
			return nil, err
		}
		if r.objects, err = deps.Informers.Informer(sh.example); err != nil {
			r.Source.Stop()
			return nil, err
		}
		return r, nil
	})
}

// references is the source of a kind that objects of type T name, with an index of
// which do.
type references[T client.Object] struct {
	Source[Request] // of the named kind
	objects         cache.Informer
	names           func(T) []client.ObjectKey

	life         lifecycle
	registration cache.Registration // under the mu of life

	mu    sync.Mutex
	users map[client.ObjectKey]map[Request]bool
	used  map[Request][]client.ObjectKey
}

// Start implements Source. The objects are indexed before what they name is seen.
func (r *references[T]) Start(ctx context.Context, enqueue func(Request, queue.AddOptions)) error {
	return r.life.start(func() error {
		r.registration = r.objects.AddHandler(r.handle)
		return r.Source.Start(ctx, enqueue)
	})
}

func (r *references[T]) handle(e cache.Event) {
	obj, ok := e.Object.(T)
	if !ok || e.Resync {
		return
	}
	var keys []client.ObjectKey
	if e.Type != cache.Deleted {
		keys = r.names(obj)
	}
	r.index(obj, keys)
}

// index replaces what an object names.
func (r *references[T]) index(obj T, keys []client.ObjectKey) {
	request := RequestFor(obj)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range r.used[request] {
		delete(r.users[key], request)
		if len(r.users[key]) == 0 {
			delete(r.users, key)
		}
	}
	delete(r.used, request)
	var all []client.ObjectKey
	for _, key := range keys {
		if key.Name == "" {
			continue
		}
		all = append(all, key)
		if key.Namespace == "" && request.Namespace != "" {
			all = append(all, client.ObjectKey{Namespace: request.Namespace, Name: key.Name})
		}
	}
	for _, key := range all {
		if r.users[key] == nil {
			r.users[key] = map[Request]bool{}
		}
		r.users[key][request] = true
	}
	if len(all) > 0 {
		r.used[request] = all
	}
}

// of returns the objects that name an object, in order.
func (r *references[T]) of(obj client.Object) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Keys(r.users[client.ObjectKeyFromObject(obj)]), func(a, b Request) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// WaitForSync implements Source.
func (r *references[T]) WaitForSync(ctx context.Context) error {
	if err := r.objects.WaitForSync(ctx); err != nil {
		return err
	}
	return r.Source.WaitForSync(ctx)
}

// Stop implements Source.
func (r *references[T]) Stop() {
	if r.life.stop() {
		r.registration.Remove() // no start changes it any more
		r.registration.Wait()
	}
	r.objects.Close()
	r.Source.Stop()
}
