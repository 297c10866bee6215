// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handmade is a controller written by hand, and beside it the same with
// [controller.Add]: a Greeting gets its text.
//
// By hand means: a generated clientset, lister and informer, a work queue, workers,
// retries and a resync, put together here. It prints what an informer does: its list,
// its watch, each event, each bookmark, and the list that follows a watch that expired.
//
// The API is in api, what is generated from it in client and config, the programs are
// in cmd.
package handmade

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	v1 "github.com/steer-dev/steer/examples/handmade/api/example/v1"
	"github.com/steer-dev/steer/examples/handmade/client/clientset/versioned"
	informers "github.com/steer-dev/steer/examples/handmade/client/informers/externalversions/example/v1"
	listers "github.com/steer-dev/steer/examples/handmade/client/listers/example/v1"
	"github.com/steer-dev/steer/queue"
)

// maxRetries is how often a Greeting that failed is tried again before it waits for the
// next resync.
const maxRetries = 5

// Options of [New].
type Options struct {
	// Workers that reconcile side by side; 0 means 1.
	Workers int
	// Resync is the time between two passes over all Greetings in the cache; 0 means
	// none. It reads nothing from the server.
	Resync time.Duration
	// Relist is the time after which the watch is made to expire, so that the informer
	// lists again; 0 means never. No controller needs it: it shows what happens.
	Relist time.Duration
	// Print takes what happens; nil drops it. It may be called from several goroutines.
	Print func(format string, args ...any)
	// Namespace of the Greetings; empty: all namespaces.
	Namespace string
}

// Controller greets.
type Controller struct {
	options  Options
	client   versioned.Interface
	traffic  *traffic
	informer toolscache.SharedIndexInformer
	lister   listers.GreetingLister
	queue    *queue.Queue[toolscache.ObjectName]
}

// New makes a controller on the cluster that cfg names. Nothing is sent yet.
func New(cfg *rest.Config, o Options) (*Controller, error) {
	if o.Print == nil {
		o.Print = func(string, ...any) {}
	}
	client, err := versioned.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		options: o,
		client:  client,
		traffic: newTraffic(client, o.Print),
		queue:   queue.New(queue.Options[toolscache.ObjectName]{MaxRetries: maxRetries}),
	}
	c.informer = informers.NewGreetingInformer(c.traffic, o.Namespace, 0, toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
	})
	c.lister = listers.NewGreetingLister(c.informer.GetIndexer())
	// What fails is printed by the clientset, also where the reflector tries again by itself.
	quiet := func(context.Context, *toolscache.Reflector, error) {}
	if err := c.informer.SetWatchErrorHandlerWithContext(quiet); err != nil {
		return nil, err
	}
	_, err = c.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, obj any) { c.enqueue(obj) },
		DeleteFunc: c.enqueue,
	})
	return c, err
}

// Run works until ctx ends, and returns when every goroutine has ended.
func (c *Controller) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.Close()
	running.Go(func() { c.informer.RunWithContext(ctx) })
	if !toolscache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced) {
		return nil
	}
	c.options.Print("the cache has what the server has: %d Greetings", len(c.informer.GetStore().ListKeys()))
	for range max(c.options.Workers, 1) {
		running.Go(func() { c.work(ctx) })
	}
	every(ctx, &running, c.options.Resync, c.Resync)
	every(ctx, &running, c.options.Relist, c.Relist)
	<-ctx.Done()
	return nil
}

// every calls do each time that an interval has passed.
func every(ctx context.Context, running *sync.WaitGroup, interval time.Duration, do func()) {
	if interval <= 0 {
		return
	}
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				do()
			}
		}
	})
}

// Resync queues every Greeting in the cache.
func (c *Controller) Resync() {
	all, err := c.lister.List(labels.Everything())
	if err != nil {
		c.options.Print("resync: %v", err)
		return
	}
	c.options.Print("resync of %d Greetings from the cache", len(all))
	for _, greeting := range all {
		c.enqueue(greeting)
	}
}

// Relist makes the watch expire: the informer lists again, and tells its handlers of
// what is new, changed or gone.
func (c *Controller) Relist() { c.traffic.expire() }

// enqueue notes which Greeting changed, not what the change was: what counts is the
// state that the worker finds.
func (c *Controller) enqueue(obj any) {
	// Where the informer missed a deletion it passes the last state that it knew, in a
	// DeletedFinalStateUnknown; this function reads the key out of both.
	name, err := toolscache.DeletionHandlingObjectToName(obj)
	if err != nil {
		c.options.Print("an event without a key: %v", err)
		return
	}
	c.queue.Add(name, queue.AddOptions{})
}

// work is one worker. The queue never gives one key to two of them at once.
func (c *Controller) work(ctx context.Context) {
	for item, ok := c.queue.Get(); ok; item, ok = c.queue.Get() {
		if err := c.reconcile(ctx, item.Key); err == nil {
			c.queue.Forget(item.Key)
		} else if after, again := c.queue.Retry(item.Key, queue.AddOptions{}); again {
			c.options.Print("%s: %v; again in %v", item.Key, err, after)
		} else {
			c.queue.Forget(item.Key)
			c.options.Print("%s: %v; given up until it changes or the next resync", item.Key, err)
		}
		c.queue.Done(item.Key)
	}
}

// reconcile brings the status of one Greeting in line with its spec. A panic becomes an
// error: without that one object would end the program for all.
func (c *Controller) reconcile(ctx context.Context, name toolscache.ObjectName) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	cached, err := c.lister.Greetings(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		c.options.Print("reconcile %s: it is gone", name)
		return nil
	}
	if err != nil {
		return err
	}
	want := v1.GreetingStatus{ObservedGeneration: cached.Generation, Text: text(cached)}
	if cached.Status == want {
		c.options.Print("reconcile %s: nothing to do", name)
		return nil
	}
	// The cache shares its objects with all who read it: change a copy.
	greeting := cached.DeepCopy()
	greeting.Status = want
	// The cache may be behind the server. Then the write is refused as a conflict, and
	// the retry finds the newer state.
	if _, err := c.client.ExampleV1().Greetings(name.Namespace).UpdateStatus(ctx, greeting, metav1.UpdateOptions{}); err != nil {
		return err
	}
	c.options.Print("reconcile %s: status written", name)
	return nil
}

// text is what both controllers write.
func text(greeting *v1.Greeting) string { return "Hello, " + greeting.Spec.To }
