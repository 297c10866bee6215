// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/bench/runtime/item"
	"github.com/steer-dev/steer/bench/runtime/micro"
	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// steps implements micro.Side.
type steps struct{}

// Cache implements micro.Side.
func (steps) Cache(ctx context.Context, config *rest.Config, obj micro.Object, indexes int, updated func()) (micro.Reads, error) {
	return newCache(ctx, config, cache.Options{}, obj, indexes, updated)
}

// CompactCache implements micro.Compacting.
func (steps) CompactCache(ctx context.Context, config *rest.Config, obj micro.Object) (micro.Reads, error) {
	return newCache(ctx, config, cache.Options{Compact: true}, obj, 0, func() {})
}

func newCache(ctx context.Context, config *rest.Config, o cache.Options, obj micro.Object, indexes int, updated func()) (reads micro.Reads, err error) {
	scheme, err := client.NewScheme(item.AddToScheme, corev1.AddToScheme)
	if err != nil {
		return reads, err
	}
	o.Log = slog.New(slog.DiscardHandler)
	live, err := client.New(config, client.Options{Scheme: scheme, Log: o.Log})
	if err != nil {
		return reads, err
	}
	c, err := cache.New(live, o)
	if err != nil {
		return reads, err
	}
	for i := range indexes {
		if err := c.IndexField(obj, fmt.Sprint("index-", i), func(o client.Object) []string { return []string{o.GetLabels()["app"]} }); err != nil {
			return reads, err
		}
	}
	informer, err := c.Informer(obj)
	if err != nil {
		return reads, err
	}
	informer.AddHandler(func(e cache.Event) {
		if e.Type == cache.Updated {
			updated()
		}
	})
	lister, err := cache.NewLister[*corev1.Pod](c)
	if err != nil {
		return reads, err
	}
	if err := c.Start(ctx); err != nil {
		return reads, err
	}
	reads = micro.Reads{
		Get: func() error {
			var pod corev1.Pod
			return c.Get(ctx, client.ObjectKey{Namespace: micro.Namespace, Name: micro.Name()}, &pod)
		},
		List: func() error {
			var pods corev1.PodList
			return c.List(ctx, &pods, client.InNamespace(micro.Namespace))
		},
		Iterate: func() error {
			pods, err := lister.All(ctx, client.InNamespace(micro.Namespace))
			if err != nil {
				return err
			}
			for range pods {
			}
			return nil
		},
	}
	return reads, c.WaitForSync(ctx)
}

// Queue implements micro.Side; each add has a cause as well.
func (steps) Queue(waiting int) (trip func(int), stop func()) {
	keys := make([]controller.Request, waiting+1)
	for i := range keys {
		keys[i].Namespace, keys[i].Name = "default", fmt.Sprint("object-", i)
	}
	cause := trace.Cause{Type: trace.Updated, Object: trace.Object{Kind: "Pod", Namespace: "default", Name: "web-1"}, Revision: "44", Changed: "status.phase"}
	q := queue.New(queue.Options[controller.Request]{})
	for i, key := range keys[1:] {
		q.Add(key, queue.AddOptions{Priority: i % 2 * queue.LowPriority, Cause: cause})
	}
	return func(i int) {
		q.Add(keys[i%len(keys)], queue.AddOptions{Priority: i % 2 * queue.LowPriority, Cause: cause})
		got, _ := q.Get()
		q.Forget(got.Key)
		q.Done(got.Key)
	}, q.Close
}

// Reconcile implements micro.Side.
func (steps) Reconcile(ctx context.Context, config *rest.Config, reconciled func()) (func(), error) {
	return reconcile(ctx, config, trace.Options{}, calling(reconciled))
}

// ReconcileUnrecorded implements micro.Recording.
func (steps) ReconcileUnrecorded(ctx context.Context, config *rest.Config, reconciled func()) (func(), error) {
	return reconcile(ctx, config, trace.Options{Budget: -1}, calling(reconciled))
}

// WriteStatus implements micro.Recording.
func (steps) WriteStatus(ctx context.Context, config *rest.Config, recorded bool, reconciled func(error)) (func(), error) {
	recorder := trace.Options{}
	if !recorded {
		recorder.Budget = -1
	}
	n := 0
	return reconcile(ctx, config, recorder, func(ctx context.Context, c client.Client) {
		before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: micro.StatusPod.Namespace, Name: micro.StatusPod.Name}}
		pod := before.DeepCopy()
		n++
		pod.Status.Message = fmt.Sprint("write ", n)
		reconciled(c.Status().Patch(ctx, pod, client.MergeFrom(before)))
	})
}

func calling(fn func()) func(context.Context, client.Client) {
	return func(context.Context, client.Client) { fn() }
}

func reconcile(ctx context.Context, config *rest.Config, recorder trace.Options, do func(context.Context, client.Client)) (func(), error) {
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	m, err := manager.New(config, manager.Options{Name: "probe", Scheme: scheme, Recorder: recorder, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	from := make(source, 1)
	err = controller.AddRequests(m, "probe", controller.Func[controller.Request](func(ctx context.Context, _ controller.Request) (controller.Result, error) {
		do(ctx, m.Client())
		return controller.Done(), nil
	}), controller.Typed(controller.From[controller.Request](from)))
	if err != nil {
		return nil, err
	}
	go func() { _ = m.Start(ctx) }() // ends with ctx
	enqueue := <-from
	var request controller.Request
	request.Namespace, request.Name = micro.Namespace, micro.Name()
	return func() { enqueue(request, queue.AddOptions{}) }, nil
}

// Controllers implements micro.Side.
func (steps) Controllers(ctx context.Context, config *rest.Config, n int, reconciled func()) error {
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		return err
	}
	m, err := manager.New(config, manager.Options{Name: "probe", Scheme: scheme, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for i := range n {
		reconciler := controller.Func[*corev1.Pod](func(context.Context, *corev1.Pod) (controller.Result, error) {
			reconciled()
			return controller.Done(), nil
		})
		if err := controller.Add(m, reconciler, controller.Name(fmt.Sprintf("probe-%d-%d", n, i))); err != nil {
			return err
		}
	}
	go func() { _ = m.Start(ctx) }() // ends with ctx
	return nil
}

// source hands out the function that enqueues.
type source chan func(controller.Request, queue.AddOptions)

// Start implements controller.Source.
func (s source) Start(_ context.Context, enqueue func(controller.Request, queue.AddOptions)) error {
	s <- enqueue
	return nil
}

// WaitForSync implements controller.Source.
func (source) WaitForSync(context.Context) error { return nil }

// Stop implements controller.Source.
func (source) Stop() {}
