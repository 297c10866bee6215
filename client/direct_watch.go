// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/client/wire"
)

// Watch implements Watcher.
func (d *direct) Watch(ctx context.Context, list ObjectList, opts ...ListOption) (watch.Interface, error) {
	gvk, err := itemKindOf(d.scheme, list)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	o := ResolveList(opts)
	c, err := d.begin(ctx, VerbWatch, gvk, ObjectKey{Namespace: o.Namespace}, "")
	if err == nil {
		err = o.Err()
	}
	var newItem func() Object
	if err == nil {
		newItem, err = d.itemFactory(list, gvk)
	}
	if err != nil {
		return nil, c.end(ctx, err)
	}
	setListQuery(c.query, &o)
	c.query.Set("watch", "true")
	c.query.Set("allowWatchBookmarks", "true")
	if o.AtLeast != "" {
		c.query.Set("resourceVersion", o.AtLeast)
	}
	ctx2, cancel := context.WithCancel(ctx)
	stream, err := d.openStream(ctx2, wire.Request{
		Verb: string(VerbWatch), Method: http.MethodGet, Path: c.path(), Query: c.query,
	}, newItem(), gvk, true)
	if err := c.end(ctx, err); err != nil {
		cancel()
		return nil, err
	}
	w := &watcher{events: make(chan watch.Event), done: make(chan struct{}), cancel: cancel, stream: stream}
	go w.run(ctx2, codec.NewEvents(stream.ContentType, stream.Body, gvk, func() runtime.Object { return newItem() }, codec.Options{}))
	return w, nil
}

// itemFactory makes empty items for list.
func (d *direct) itemFactory(list ObjectList, gvk schema.GroupVersionKind) (func() Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return func() Object { return NewUnstructured(gvk) }, nil
	case *metav1.PartialObjectMetadataList:
		return func() Object { return NewMetadata(gvk) }, nil
	}
	if _, err := newObject(d.scheme, gvk); err != nil {
		return nil, err
	}
	return func() Object {
		obj, _ := newObject(d.scheme, gvk)
		return obj
	}, nil
}

// watcher is a watch.Interface over a stream.
type watcher struct {
	events chan watch.Event
	done   chan struct{} // closed when run has returned
	cancel context.CancelFunc
	stream *wire.Stream
	once   sync.Once
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface; it returns when the stream is closed.
func (w *watcher) Stop() {
	w.once.Do(func() {
		w.cancel()
		_ = w.stream.Body.Close()
	})
	<-w.done
}

func (w *watcher) run(ctx context.Context, events *codec.Events) {
	defer close(w.done)
	defer close(w.events)
	defer w.cancel()
	defer func() { _ = w.stream.Body.Close() }()
	for {
		e, err := events.Next()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) {
				status := apierrors.NewInternalError(fmt.Errorf("watch stream: %w", err)).Status()
				w.send(ctx, watch.Event{Type: watch.Error, Object: &status})
			}
			return
		}
		if !w.send(ctx, e) {
			return
		}
	}
}

func (w *watcher) send(ctx context.Context, e watch.Event) bool {
	select {
	case w.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}
