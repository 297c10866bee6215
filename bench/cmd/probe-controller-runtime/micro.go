// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	sources "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/steer-dev/steer/bench/runtime/item"
	"github.com/steer-dev/steer/bench/runtime/micro"
)

// steps implements micro.Side.
type steps struct{}

// Cache implements micro.Side.
func (steps) Cache(ctx context.Context, config *rest.Config, obj micro.Object, indexes int, updated func()) (reads micro.Reads, err error) {
	scheme := runtime.NewScheme()
	if err := item.AddToScheme(scheme); err != nil {
		return reads, err
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		return reads, err
	}
	c, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return reads, err
	}
	for i := range indexes {
		if err := c.IndexField(ctx, obj, fmt.Sprint("index-", i), func(o client.Object) []string { return []string{o.GetLabels()["app"]} }); err != nil {
			return reads, err
		}
	}
	go func() { _ = c.Start(ctx) }() // ends with ctx
	informer, err := c.GetInformer(ctx, obj)
	if err != nil {
		return reads, err
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { updated() }}); err != nil {
		return reads, err
	}
	if !c.WaitForCacheSync(ctx) {
		return reads, fmt.Errorf("the cache did not sync")
	}
	return micro.Reads{
		Get: func() error {
			var pod corev1.Pod
			return c.Get(ctx, client.ObjectKey{Namespace: micro.Namespace, Name: micro.Name()}, &pod)
		},
		List: func() error {
			var pods corev1.PodList
			return c.List(ctx, &pods, client.InNamespace(micro.Namespace))
		},
	}, nil
}

// Queue implements micro.Side with the default queue of controllers.
func (steps) Queue(waiting int) (trip func(int), stop func()) {
	keys := make([]ctrl.Request, waiting+1)
	for i := range keys {
		keys[i] = request("default", fmt.Sprint("object-", i))
	}
	high, low := 0, -100
	priority := func(i int) *int {
		if i%2 == 1 {
			return &low
		}
		return &high
	}
	q := priorityqueue.New[ctrl.Request]("bench")
	for i, key := range keys[1:] {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: priority(i)}, key)
	}
	return func(i int) {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: priority(i)}, keys[i%len(keys)])
		got, _, _ := q.GetWithPriority()
		q.Forget(got)
		q.Done(got)
	}, q.ShutDown
}

// Reconcile implements micro.Side.
func (steps) Reconcile(ctx context.Context, config *rest.Config, reconciled func()) (func(), error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	c, err := controller.New("probe", m, controller.Options{Reconciler: reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		reconciled()
		return ctrl.Result{}, nil
	})})
	if err != nil {
		return nil, err
	}
	queues := make(chan workqueue.TypedRateLimitingInterface[ctrl.Request], 1)
	err = c.Watch(sources.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		queues <- q
		return nil
	}))
	if err != nil {
		return nil, err
	}
	go func() { _ = m.Start(ctx) }() // ends with ctx
	q := <-queues
	return func() { q.Add(request(micro.Namespace, micro.Name())) }, nil
}

// Controllers implements micro.Side.
func (steps) Controllers(ctx context.Context, config *rest.Config, n int, reconciled func()) error {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	for i := range n {
		err := ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).Named(fmt.Sprintf("probe-%d-%d", n, i)).
			Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
				var pod corev1.Pod
				err := m.GetClient().Get(ctx, req.NamespacedName, &pod)
				reconciled()
				return ctrl.Result{}, err
			}))
		if err != nil {
			return err
		}
	}
	go func() { _ = m.Start(ctx) }() // ends with ctx
	return nil
}

func request(namespace, name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}
