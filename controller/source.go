// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/own"
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// Source feeds requests to a controller. A source belongs to one controller: a second
// Start is [ErrStarted], and a Start after Stop [ErrStopped].
type Source[K comparable] interface {
	// Start begins to call enqueue and returns. It must not wait for the other
	// side. ctx ends with the controller.
	Start(ctx context.Context, enqueue func(K, queue.AddOptions)) error
	// WaitForSync waits until everything that was there at the start has been
	// enqueued. When ctx ends first, the error says what to do about it.
	WaitForSync(ctx context.Context) error
	// Stop ends the source: when it returns, enqueue is not called any more. It
	// is idempotent, and is called without a Start when the controller does not
	// get that far.
	Stop()
}

// Kind is a source of the events of a kind. The informers may be those of
// another cluster. obj says which kind, and whether it is held as Go type,
// unstructured or metadata only. The watch is declared at once, so that the
// cache is warm before the controller starts.
func Kind[T client.Object, K comparable](informers cache.Informers, obj T, handler Handler[T, K], predicates ...Predicate[T]) (Source[K], error) {
	informer, err := informers.Informer(obj)
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", obj, err)
	}
	return &kindSource[T, K]{informer: informer, handler: handler, predicate: All(predicates...), gvk: informer.Status().GVK}, nil
}

// reconciledKind is the source of the kind that a controller reconciles: a [Kind]
// without the events of the controller's own writes.
func reconciledKind(sh *shared, obj client.Object, predicates ...Predicate[client.Object]) (Source[Request], error) {
	source, err := Kind(sh.deps.Informers, obj, Self[client.Object](), predicates...)
	if err != nil {
		return nil, err
	}
	source.(*kindSource[client.Object, Request]).own = &sh.own
	return source, nil
}

type kindSource[T client.Object, K comparable] struct {
	informer  cache.Informer
	handler   Handler[T, K]
	predicate Predicate[T]
	gvk       schema.GroupVersionKind
	differ    trace.Differ
	own       *own.Writes // nil for kinds that the controller does not reconcile

	lifecycle
	registration cache.Registration // under its mu
}

func (s *kindSource[T, K]) Start(ctx context.Context, enqueue func(K, queue.AddOptions)) error {
	return s.start(func() error {
		s.registration = s.informer.AddHandler(func(e cache.Event) { s.handle(ctx, e, enqueue) })
		return nil
	})
}

func (s *kindSource[T, K]) handle(ctx context.Context, e cache.Event, enqueue func(K, queue.AddOptions)) {
	event, ok := typed[T](e)
	if !ok || !s.predicate(event) {
		return
	}
	order := queue.AddOptions{Cause: trace.Cause{
		Type: causeType(e),
		Object: trace.Object{
			Group: s.gvk.Group, Kind: s.gvk.Kind,
			Namespace: e.Object.GetNamespace(), Name: e.Object.GetName(),
		},
		Revision: e.Object.GetResourceVersion(),
	}}
	if e.Initial || e.Resync {
		order.Priority = queue.LowPriority
	}
	send := func() {
		s.handler(ctx, event, func(k K) {
			order.Cause.Changed = e.Changed(s.differ.Changed) // only now is it known that there is a request
			enqueue(k, order)
		})
	}
	if s.own != nil {
		s.own.Event(&e, send)
		return
	}
	send()
}

func (s *kindSource[T, K]) WaitForSync(ctx context.Context) error {
	s.mu.Lock()
	r := s.registration
	s.mu.Unlock()
	if r == nil {
		return errNotStarted
	}
	return r.WaitForSync(ctx)
}

func (s *kindSource[T, K]) Stop() {
	if s.stop() {
		s.registration.Remove() // no start changes it any more
		s.registration.Wait()
	}
	s.informer.Close()
}

// Channel is a source of the requests that are sent on ch, until it is closed.
func Channel[K comparable](ch <-chan K) Source[K] {
	return &loop[K]{run: func(ctx context.Context, enqueue func(K, queue.AddOptions)) {
		for {
			select {
			case k, ok := <-ch:
				if !ok {
					return
				}
				enqueue(k, queue.AddOptions{Cause: trace.Cause{Type: trace.Signalled}})
			case <-ctx.Done():
				return
			}
		}
	}}
}

// Poll is a source that calls fn at once and then every interval, and requests
// what it returns: what differs from what was there before. An error of fn is
// logged and ends nothing.
func Poll[K comparable](interval time.Duration, fn func(ctx context.Context) ([]K, error)) Source[K] {
	return &loop[K]{run: func(ctx context.Context, enqueue func(K, queue.AddOptions)) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			keys, err := fn(ctx)
			if err != nil && ctx.Err() == nil {
				Log(ctx).Error("Polling failed; it is tried again", "error", err, "interval", interval)
			}
			for _, k := range keys {
				enqueue(k, queue.AddOptions{Cause: trace.Cause{Type: trace.Polled}})
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}}
}

// loop is a source that is one goroutine.
type loop[K comparable] struct {
	run func(ctx context.Context, enqueue func(K, queue.AddOptions))

	lifecycle
	cancel context.CancelFunc // under its mu
	done   sync.WaitGroup
}

func (l *loop[K]) Start(ctx context.Context, enqueue func(K, queue.AddOptions)) error {
	return l.start(func() error {
		running, cancel := context.WithCancel(ctx)
		l.cancel = cancel
		l.done.Go(func() { l.run(running, enqueue) })
		return nil
	})
}

func (l *loop[K]) WaitForSync(context.Context) error { return nil }

func (l *loop[K]) Stop() {
	if l.stop() {
		l.cancel() // no start changes it any more
	}
	l.done.Wait()
}
