// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
)

// Sender carries one request out. An error tells that it was not, or was not
// fully, successful.
type Sender func(ctx context.Context, r Request) error

// Runner feeds controllers with the history of a store and sends their
// requests. It is for one goroutine at a time, except Close and Idle.
type Runner struct {
	store       storage.Store
	controllers []Controller
	send        Sender
	log         *slog.Logger

	cursor storage.Cursor // nil: start over from a snapshot
	at     storage.Revision
	failed bool

	// mu guards what Idle shares with Run.
	mu     sync.Mutex
	idleAt storage.Revision // up to which nothing is left to do
	rested chan struct{}    // closed when idleAt moves; nil while nobody waits
	wake   func()           // ends the rest that began last; nil before the first one
}

// NewRunner returns a runner that has seen nothing yet.
func NewRunner(store storage.Store, send Sender, log *slog.Logger, controllers ...Controller) *Runner {
	return &Runner{store: store, controllers: controllers, send: send, log: log}
}

// Delays between tries while requests fail.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Run advances until ctx ends, whenever a write concerns somebody.
func (r *Runner) Run(ctx context.Context) error {
	delay := firstRetry
	for ctx.Err() == nil {
		sent, err := r.Advance(ctx)
		switch {
		case err != nil && !errors.Is(err, storage.ErrClosed):
			r.log.Error("the built-in controllers cannot read the store", "err", err)
			fallthrough
		case err != nil:
			return err
		case r.failed:
			delay = min(2*delay, lastRetry)
			r.await(ctx, delay)
		case sent > 0:
			delay = firstRetry
		default:
			delay = firstRetry
			if limit, due := r.untilWake(); !due {
				r.rest(ctx, limit)
			}
		}
	}
	return nil
}

// rest notes that nothing is left to do, and waits for a write that concerns
// somebody, for Idle, or at most for a limit if there is one.
func (r *Runner) rest(ctx context.Context, limit time.Duration) {
	ctx, wake := context.WithCancel(ctx)
	defer wake()
	r.mu.Lock()
	r.wake = wake
	r.idleAt = r.at
	if r.rested != nil {
		close(r.rested)
		r.rested = nil
	}
	r.mu.Unlock()
	r.await(ctx, limit)
}

// concerns reports whether a write ends the waiting. After a failure any one does: it
// may be what was missing.
func (r *Runner) concerns(e storage.Event) bool {
	if r.failed {
		return true
	}
	for _, c := range r.controllers {
		if c.Concerns(e) {
			return true
		}
	}
	return false
}

// Idle waits until Run has nothing left to do with what was written up to a
// revision. It may be called beside Run.
func (r *Runner) Idle(ctx context.Context, at storage.Revision) error {
	for {
		r.mu.Lock()
		if r.idleAt >= at {
			r.mu.Unlock()
			return nil
		}
		if r.rested == nil {
			r.rested = make(chan struct{})
		}
		if r.wake != nil {
			r.wake() // what was written may have concerned nobody
		}
		rested := r.rested
		r.mu.Unlock()
		select {
		case <-rested:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// untilWake returns how long until a controller wants to act although nothing
// was written, 0 if none does; due tells that the time has come.
func (r *Runner) untilWake() (limit time.Duration, due bool) {
	for _, c := range r.controllers {
		w, ok := c.(Waker)
		if !ok {
			continue
		}
		at := w.Wake()
		if at.IsZero() {
			continue
		}
		left := time.Until(at)
		if left <= 0 {
			return 0, true
		}
		if limit == 0 || left < limit {
			limit = left
		}
	}
	return limit, false
}

// await waits for a write that ends the waiting, or at most for a limit if there is one.
func (r *Runner) await(ctx context.Context, limit time.Duration) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	batch, err := r.cursor.Next(ctx)
	if err != nil {
		return // the next Advance meets the same error, unless it was the limit
	}
	r.observe(batch)
}

// Settle advances until nothing is left to do now, and returns how many requests
// that took. It gives up when requests keep failing.
func (r *Runner) Settle(ctx context.Context) (int, error) {
	total := 0
	for tries := 0; ; {
		sent, err := r.Advance(ctx)
		total += sent
		if err != nil {
			return total, err
		}
		if !r.failed {
			if _, due := r.untilWake(); sent == 0 && !due {
				return total, nil
			}
			if ctx.Err() != nil {
				return total, context.Cause(ctx)
			}
			tries = 0
			continue
		}
		if tries++; tries == 10 {
			return total, errors.New("controlplane: requests of the built-in controllers keep failing; see the log")
		}
	}
}

// Advance takes in what was written since the last call, asks every controller
// once and sends what they ask for. It returns how many requests that was.
func (r *Runner) Advance(ctx context.Context) (int, error) {
	if err := r.catchUp(ctx); err != nil {
		return 0, err
	}
	view, err := r.store.View(ctx, r.at)
	if errors.Is(err, storage.ErrCompacted) {
		r.restart()
		return r.Advance(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("controlplane: built-in controllers: %w", err)
	}
	r.failed = false
	sent := 0
	for _, c := range r.controllers {
		for _, request := range c.Step(view, time.Now()) {
			err := r.send(ctx, request)
			if err != nil {
				r.failed = true
				r.log.Debug("a request of a built-in controller failed", "controller", c.Name(), "method", request.Method, "path", request.Path, "err", err)
			}
			c.Report(request, err)
			sent++
		}
	}
	return sent, nil
}

// catchUp observes everything up to now, from a snapshot if it has to.
func (r *Runner) catchUp(ctx context.Context) error {
	for {
		if r.cursor == nil {
			view, err := r.store.View(ctx, 0)
			if err != nil {
				return err
			}
			cursor, err := r.store.Watch(storage.Range{WakeOn: r.concerns}, view.Revision())
			if err != nil {
				return err
			}
			r.cursor, r.at = cursor, view.Revision()
			for _, c := range r.controllers {
				c.Reset(view)
			}
		}
		batch, err := r.cursor.Poll()
		if errors.Is(err, storage.ErrLagged) {
			r.restart()
			continue
		}
		if err != nil {
			return err
		}
		if r.observe(batch); len(batch.Events) == 0 {
			return nil
		}
	}
}

func (r *Runner) observe(batch storage.Batch) {
	for _, event := range batch.Events {
		for _, c := range r.controllers {
			if c.Concerns(event) {
				c.Observe(event)
			}
		}
	}
	r.at = max(r.at, batch.Revision)
}

// restart makes the next step begin with a snapshot.
func (r *Runner) restart() {
	r.Close()
	r.cursor = nil
}

// Close releases the runner's place in the history and wakes a waiting Run.
func (r *Runner) Close() {
	if r.cursor != nil {
		r.cursor.Close()
	}
}
