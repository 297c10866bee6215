// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// instant is a server whose only object is read as fast as a cache can.
type instant struct {
	*server
	object *Web
	event  func(cache.Event)
	ready  chan struct{}
}

func (s *instant) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	*obj.(*Web) = *s.object.DeepCopyObject().(*Web)
	return nil
}

func (s *instant) Informer(client.Object) (cache.Informer, error) {
	return &instantInformer{informer: informer{server: s.server}, to: s}, nil
}

type instantInformer struct {
	informer
	to *instant
}

func (i *instantInformer) AddHandler(fn cache.Handler) cache.Registration {
	i.to.event = fn
	close(i.to.ready)
	return &handler{server: i.server}
}

type bench struct {
	*instant
	trace *trace.Recorder
	part  controller.Runnable
}

func (b *bench) Add(r controller.Runnable) error { b.part = r; return nil }

func (b *bench) Deps() controller.Deps {
	return controller.Deps{Client: b.instant, Informers: b.instant, Trace: b.trace, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// BenchmarkEmptyReconcile is one event through predicate, handler, queue, worker
// and a reconciler that does nothing.
func BenchmarkEmptyReconcile(b *testing.B) {
	off, on := trace.Options{Budget: -1}, trace.Options{}
	for name, o := range map[string]trace.Options{"untraced": off, "traced": on} {
		b.Run("objects/"+name, func(b *testing.B) {
			done := make(chan struct{})
			m := &bench{instant: &instant{server: newServer(addWeb), object: web("a"), ready: make(chan struct{})}, trace: trace.NewRecorder(o)}
			m.object.SetGroupVersionKind((&Web{}).GroupVersionKind())
			err := controller.Add(m, controller.Func[*Web](func(context.Context, *Web) (controller.Result, error) {
				done <- struct{}{}
				return controller.Done(), nil
			}))
			if err != nil {
				b.Fatal(err)
			}
			measure(b, m, func() {
				m.event(cache.Event{Type: cache.Updated, Object: m.object, Old: m.object})
				<-done
			})
		})
		b.Run("requests/"+name, func(b *testing.B) {
			done := make(chan struct{})
			m := &bench{instant: &instant{server: newServer(addWeb), object: web("a"), ready: make(chan struct{})}, trace: trace.NewRecorder(o)}
			source := &direct{ready: m.ready}
			err := controller.AddRequests(m, "bench", controller.Func[controller.Request](func(context.Context, controller.Request) (controller.Result, error) {
				done <- struct{}{}
				return controller.Done(), nil
			}), controller.Typed(controller.From[controller.Request](source)))
			if err != nil {
				b.Fatal(err)
			}
			req := controller.RequestFor(m.object)
			measure(b, m, func() {
				source.enqueue(req, queue.AddOptions{})
				<-done
			})
		})
	}
}

// direct is a source that a benchmark drives by hand.
type direct struct {
	enqueue func(controller.Request, queue.AddOptions)
	ready   chan struct{}
}

func (d *direct) Start(_ context.Context, enqueue func(controller.Request, queue.AddOptions)) error {
	d.enqueue = enqueue
	close(d.ready)
	return nil
}
func (d *direct) WaitForSync(context.Context) error { return nil }
func (d *direct) Stop()                             {}

func measure(b *testing.B, m *bench, once func()) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- m.part.Start(ctx) }()
	<-m.ready
	once()
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
