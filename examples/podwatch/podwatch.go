// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podwatch follows the Pods of a namespace by hand: an informer fills a
// queue, workers empty it. It is what a controller does underneath, for those
// who need an informer and a queue and nothing else.
//
// The program is in cmd.
package podwatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// maxRetries is how often a Pod that failed is tried again before it is dropped.
const maxRetries = 5

// Options of [New]. Sync is required.
type Options struct {
	// Namespace to watch; empty means "default".
	Namespace string
	// Fields selects Pods, by "spec.nodeName" for instance; nil means all.
	Fields fields.Selector
	// Workers that run Sync side by side; 0 means 1.
	Workers int
	// Remembered are the Pods that were there when the program last ran: Sync
	// hears of those that are gone.
	Remembered []client.Object
	// Sync brings the world in line with a Pod, which is nil when it does not
	// exist any more. It never runs twice at once for one Pod. An error, or a
	// panic, is tried again up to five times.
	Sync func(ctx context.Context, key client.ObjectKey, pod *corev1.Pod) error
	// Dropped is called with a Pod that was given up, and why; nil logs it.
	Dropped func(key client.ObjectKey, err error)
	// Log takes what happens; nil means slog.Default().
	Log *slog.Logger
}

// Watcher follows Pods.
type Watcher struct {
	options  Options
	cache    *cache.Cache
	informer cache.Informer
	pods     *cache.Lister[*corev1.Pod]
	queue    *queue.Queue[client.ObjectKey]
}

// New makes a watcher of the cluster that cfg names. Nothing is sent yet.
func New(cfg *rest.Config, o Options) (*Watcher, error) {
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Dropped == nil {
		o.Dropped = func(key client.ObjectKey, err error) {
			o.Log.Error("Dropping Pod out of the queue", "pod", key, "error", err)
		}
	}
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	live, err := client.New(cfg, client.Options{Scheme: scheme, Log: o.Log})
	if err != nil {
		return nil, err
	}
	w := &Watcher{options: o, queue: queue.New(queue.Options[client.ObjectKey]{MaxRetries: maxRetries})}
	w.cache, err = cache.New(live, cache.Options{Log: o.Log, ByKind: []cache.KindOptions{{
		Object: &corev1.Pod{}, Namespaces: []string{o.Namespace}, Fields: o.Fields, Remembered: o.Remembered,
	}}})
	if err != nil {
		return nil, err
	}
	if w.informer, err = w.cache.Informer(&corev1.Pod{}); err != nil {
		return nil, err
	}
	if w.pods, err = cache.NewLister[*corev1.Pod](w.cache); err != nil {
		return nil, err
	}
	return w, nil
}

// Run works until ctx ends, and returns when every goroutine has ended.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.cache.Stop()
	// The handler only notes which Pod has changed: what counts is the state that
	// the worker finds. A deletion that no event showed carries the last known state,
	// so its key is as good as that of any other event.
	w.informer.AddHandler(func(e cache.Event) {
		w.queue.Add(client.ObjectKeyFromObject(e.Object), queue.AddOptions{Cause: cause(e)})
	})
	if err := w.cache.Start(ctx); err != nil {
		return err
	}
	if err := w.informer.WaitForSync(ctx); err != nil {
		w.queue.Close()
		if ctx.Err() != nil { // told to stop before; the cache has logged why it waited
			return nil
		}
		return err
	}
	w.options.Log.Info("Starting workers", "count", max(w.options.Workers, 1))
	var workers sync.WaitGroup
	for range max(w.options.Workers, 1) {
		workers.Go(func() { w.work(ctx) })
	}
	<-ctx.Done()
	w.queue.Close()
	workers.Wait()
	return nil
}

// work is one worker.
func (w *Watcher) work(ctx context.Context) {
	for item, ok := w.queue.Get(); ok; item, ok = w.queue.Get() {
		if err := w.sync(ctx, item.Key); err == nil {
			w.queue.Forget(item.Key)
		} else if after, again := w.queue.Retry(item.Key, queue.AddOptions{}); again {
			w.options.Log.Info("Error syncing Pod", "pod", item.Key, "error", err, "retryIn", after)
		} else {
			w.options.Dropped(item.Key, err)
		}
		w.queue.Done(item.Key)
	}
}

// sync calls Sync with the Pod as the cache knows it. A panic becomes an error.
func (w *Watcher) sync(ctx context.Context, key client.ObjectKey) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	pod, err := w.pods.Get(ctx, key)
	if apierrors.IsNotFound(err) {
		return w.options.Sync(ctx, key, nil)
	}
	if err != nil {
		return err
	}
	return w.options.Sync(ctx, key, pod)
}

func cause(e cache.Event) trace.Cause {
	t := trace.Updated
	switch {
	case e.Initial:
		t = trace.Listed
	case e.Type == cache.Added:
		t = trace.Created
	case e.Type == cache.Deleted:
		t = trace.Deleted
	}
	return trace.Cause{Type: t, Object: trace.Object{Kind: "Pod", Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}}
}
