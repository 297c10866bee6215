// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/steer-dev/steer/queue"
)

// WatchSet is a source of sources that come and go while the controller runs, for
// kinds that are not known before: those that an object names, or other clusters.
// Give it to the controller with [From], and add to it from within Reconcile:
//
//	err := r.watches.Add(gvk.String(), func() (controller.Source[controller.Request], error) {
//		return controller.Kind(r.informers, client.NewUnstructured(gvk), r.requests)
//	})
//
// A [Kind] that is removed gives its informer back: the watch and its cache go when
// they have no other user. It is safe for concurrent use. The zero value is ready.
type WatchSet[K comparable] struct {
	mu      sync.Mutex
	ctx     context.Context // of Start; nil before
	enqueue func(K, queue.AddOptions)
	stopped bool
	byName  map[string]Source[K]
}

// Add opens a source and starts it, at once when the controller runs. It does
// nothing when the set has one of the name.
func (w *WatchSet[K]) Add(name string, open func() (Source[K], error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return fmt.Errorf("add watch %s: %w", name, ErrStopped)
	}
	if w.byName[name] != nil {
		return nil
	}
	source, err := open()
	if err != nil {
		return fmt.Errorf("add watch %s: %w", name, err)
	}
	if w.ctx != nil {
		if err := source.Start(w.ctx, w.enqueue); err != nil {
			source.Stop()
			return fmt.Errorf("add watch %s: %w", name, err)
		}
	}
	if w.byName == nil {
		w.byName = map[string]Source[K]{}
	}
	w.byName[name] = source
	return nil
}

// Remove stops a source: when it returns, the source requests nothing any more. It
// does nothing when there is none of the name. It must not be called from the
// handler of the source.
func (w *WatchSet[K]) Remove(name string) {
	w.mu.Lock()
	source := w.byName[name]
	delete(w.byName, name)
	w.mu.Unlock()
	if source != nil {
		source.Stop()
	}
}

// Names returns the names of the sources, in order.
func (w *WatchSet[K]) Names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, 0, len(w.byName))
	for name := range w.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Start implements [Source].
func (w *WatchSet[K]) Start(ctx context.Context, enqueue func(K, queue.AddOptions)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stopped:
		return ErrStopped
	case w.ctx != nil:
		return ErrStarted
	}
	w.ctx, w.enqueue = ctx, enqueue
	for name, source := range w.byName {
		if err := source.Start(ctx, enqueue); err != nil {
			return fmt.Errorf("start watch %s: %w", name, err)
		}
	}
	return nil
}

// WaitForSync implements [Source]: it waits for what was added before the
// controller started.
func (w *WatchSet[K]) WaitForSync(ctx context.Context) error {
	for _, name := range w.Names() {
		w.mu.Lock()
		source := w.byName[name]
		w.mu.Unlock()
		if source == nil {
			continue
		}
		if err := source.WaitForSync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop implements [Source].
func (w *WatchSet[K]) Stop() {
	w.mu.Lock()
	sources := w.byName
	w.byName, w.stopped = nil, true
	w.mu.Unlock()
	for _, source := range sources {
		source.Stop()
	}
}
