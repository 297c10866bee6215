// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller turns events into calls of Reconcile.
//
// A reconciler is a type with one method. Its parameter says what is
// reconciled, and [Add] puts it to work:
//
//	func (r *Reconciler) Reconcile(ctx context.Context, web *v1.Web) (controller.Result, error)
//
//	err := controller.Add(m, r,
//		controller.Owns[*appsv1.Deployment](),
//		controller.Finalizer("example.com/cleanup", r.Cleanup),
//		controller.Concurrency(4))
//
// The object is private to the call. Its status belongs to the reconciler: what
// Reconcile changes in it is written afterwards, once, also when it fails.
// Everything else of the object is read-only; changing it is an error.
//
// Reconcile is level-triggered: any event may be lost, merged or repeated, and
// what counts is the state that is read. One object is never reconciled twice
// at once. An object with a deletion timestamp never reaches Reconcile: it goes
// to the functions of the finalizers, and to [OnGone] when it is no more.
//
// A reconciler whose parameter is a [Request], or any other comparable type
// that is not an object, is put to work by [AddRequests]: it gets the request
// itself and reads for itself; the options Watches and From say where its requests
// come from. Options that are about objects do not compile there.
//
// How an attempt ended is a value: [Done], [After], [Wait], [Retry], or an
// error, which is retried with back-off unless it is [Terminal]. A conflict is
// no failure: it is retried without noise.
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/access"
	"github.com/steer-dev/steer/controller/internal/children"
	"github.com/steer-dev/steer/controller/internal/comeback"
	"github.com/steer-dev/steer/controller/internal/own"
	"github.com/steer-dev/steer/controller/internal/queued"
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// syncReport is how long a controller waits for its sources before it says
// which one it is waiting for, again and again.
const syncReport = 10 * time.Second

// shared is what a controller knows whatever its requests are.
type shared struct {
	name string
	// owner of the fields that the controller writes.
	owner string
	deps  Deps
	log   *slog.Logger
	// gvk is the reconciled kind; empty for controllers of other requests.
	gvk     schema.GroupVersionKind
	example client.Object // an empty one of gvk; nil for others
	// scope of gvk is found out at the start when needScope is set.
	scope     scope
	needScope bool
	// owned are the kinds of Owns and OwnsKind, in the form that they are held.
	owned []client.Object
	pods  client.Reader // of Pods; nil unless they are watched
	// silent: no events about changes of the conditions.
	silent bool
	// own are the writes that the controller makes for its reconciler.
	own own.Writes
	// children is what is remembered of those of each object.
	children children.Memories
	// calls tells records what the calls of attempts read and wrote.
	calls *access.Calls
}

// controller is the engine behind [Add] and [AddRequests]: sources fill a queue, workers empty it.
type controller[K comparable] struct {
	shared      *shared
	concurrency int
	timeout     time.Duration
	everywhere  bool
	sources     []Source[K]
	queue       *queue.Queue[K]
	soon        comeback.Requests[K]
	instruments Instruments
	// process handles one request; describe names it for log and trace.
	process  func(a *attempt, key K) (Result, error)
	describe func(key K) (trace.Object, string)
	started  atomic.Bool
	working  chan struct{} // closed when the workers have started
}

var (
	_ LeaderElected  = (*controller[Request])(nil)
	_ Named          = (*controller[Request])(nil)
	_ ControllerInfo = (*controller[Request])(nil)
)

// Name implements Named.
func (c *controller[K]) Name() string { return c.shared.name }

// Example implements ControllerInfo.
func (c *controller[K]) Example() client.Object { return c.shared.example }

// NeedLeaderElection implements LeaderElected.
func (c *controller[K]) NeedLeaderElection() bool { return !c.everywhere }

// Concurrency implements ControllerInfo.
func (c *controller[K]) Concurrency() int { return c.concurrency }

// Stats and Queued implement ControllerInfo.
func (c *controller[K]) Stats() queue.Stats { return c.queue.Stats() }
func (c *controller[K]) Queued(most int) trace.Queued {
	return queued.Of(c.shared.name, c.queue, most, c.describe)
}

// Idle waits until the workers have started and nothing is left for them to do:
// see queue.Queue.Idle, and nothing comes back within a second.
func (c *controller[K]) Idle(ctx context.Context) error {
	select {
	case <-c.working:
	case <-ctx.Done():
		return fmt.Errorf("controller %s has not started its workers: %w", c.shared.name, context.Cause(ctx))
	}
	for {
		if err := c.queue.Idle(ctx); err != nil {
			return fmt.Errorf("controller %s: %w", c.shared.name, c.soon.Explain(err))
		}
		// A request that comes back is in here until its attempt begins, and the queue
		// is not idle from then on: between the two checks no request is missed.
		idle, err := c.soon.Idle(ctx)
		if err != nil {
			return fmt.Errorf("controller %s: %w", c.shared.name, c.soon.Explain(err))
		}
		if idle {
			return nil
		}
	}
}

// Start implements Runnable: it starts the sources, waits until they are in
// sync, reconciles until ctx ends, and returns when the last worker has.
func (c *controller[K]) Start(ctx context.Context) error {
	if c.started.Swap(true) {
		return fmt.Errorf("start controller %s: %w", c.shared.name, ErrStarted)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.stopSources()
	defer c.queue.Close()
	ctx = client.WithObserver(ctx, observe)
	ctx = context.WithValue(ctx, logKey{}, c.shared.log)

	if c.shared.needScope && !c.findScope(ctx) {
		return nil
	}
	for _, source := range c.sources {
		if err := source.Start(ctx, c.queue.Add); err != nil {
			return fmt.Errorf("controller %s: start source: %w", c.shared.name, err)
		}
	}
	for _, source := range c.sources {
		if !c.waitForSync(ctx, source) {
			return nil
		}
	}
	c.shared.log.Info("Starting workers", "worker count", c.concurrency)
	var workers sync.WaitGroup
	close(c.working)
	for range c.concurrency {
		workers.Go(func() { c.work(ctx) })
	}
	<-ctx.Done()
	c.queue.Close()
	workers.Wait()
	c.shared.log.Info("All workers finished")
	return nil
}

func (c *controller[K]) stopSources() {
	for _, source := range c.sources {
		source.Stop()
	}
}

// findScope asks the server for the scope of the reconciled kind until it knows,
// and reports false when ctx ends before.
func (c *controller[K]) findScope(ctx context.Context) bool {
	backoff := queue.Exponential(100*time.Millisecond, syncReport)
	for n := 1; ; n++ {
		resource, err := c.shared.deps.Client.Mapper().ForKind(ctx, c.shared.gvk)
		if err == nil {
			c.shared.scope.namespaced = resource.Namespaced
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		c.shared.log.Warn("The controller waits for the kind that it reconciles", "error", err)
		select {
		case <-time.After(backoff(n)):
		case <-ctx.Done():
			return false
		}
	}
}

// waitForSync waits for a source, says what it waits for, and reports false when
// ctx ends before.
func (c *controller[K]) waitForSync(ctx context.Context, source Source[K]) bool {
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, syncReport)
		err := source.WaitForSync(bounded)
		cancel()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			c.shared.log.Warn("The controller waits for a source", "error", err)
			if bounded.Err() == nil { // it failed before its time
				select {
				case <-time.After(syncReport):
				case <-ctx.Done():
				}
			}
		}
	}
	return false
}

// work is one worker.
func (c *controller[K]) work(ctx context.Context) {
	goroutine := trace.Goroutine()
	for item, ok := c.queue.Get(); ok; item, ok = c.queue.Get() {
		c.run(ctx, &item, goroutine)
		c.queue.Done(item.Key)
	}
}

// run makes one attempt, on a goroutine of that number, and settles what comes of it.
func (c *controller[K]) run(ctx context.Context, item *queue.Item[K], goroutine uint64) {
	object, request := c.describe(item.Key)
	c.soon.Begin(item.Key)
	began := time.Now()
	a := newAttempt(ctx, c.shared, object, request)
	c.shared.deps.Trace.Begin(&a.record, trace.Start{
		Controller: c.shared.name, Object: object, Request: request, Began: began,
		Waited: item.Waited, Retries: item.Failures, Causes: item.Causes, Goroutine: goroutine,
	})
	var timedOut bool
	result, err := c.attempt(a, item.Key, &timedOut)
	took := time.Since(began)
	outcome, after := c.settle(ctx, a, item, result, err, timedOut)
	c.soon.End(item.Key, after, outcome == trace.Requeued) // the queue is not idle before Done
	a.record.End(trace.End{Outcome: outcome, Took: took, After: after, Err: err})
	if c.instruments != nil {
		c.instruments.Reconciled(outcome, took)
	}
}

// attempt calls the reconciler. A panic becomes an error.
func (c *controller[K]) attempt(a *attempt, key K, timedOut *bool) (result Result, err error) {
	if c.timeout > 0 {
		parent := a.Context
		bounded, cancel := context.WithTimeout(parent, c.timeout)
		a.Context = bounded
		defer func() {
			*timedOut = err != nil && parent.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded)
			cancel()
		}()
	}
	defer func() {
		if v := recover(); v != nil {
			result, err = Result{}, &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return c.process(a, key)
}

// settle passes the end of an attempt to the queue and to the log.
func (c *controller[K]) settle(ctx context.Context, a *attempt, item *queue.Item[K], result Result, err error, timedOut bool) (trace.Outcome, time.Duration) {
	if err == nil {
		return c.settleResult(item, result)
	}
	var panicked *PanicError
	broken := errors.As(err, &panicked)
	if report := c.shared.deps.OnError; report != nil && (broken || ctx.Err() == nil && !isQuiet(err)) {
		report(fmt.Errorf("controller %s, %s: %w", c.shared.name, cmp.Or(a.request, a.object.String()), err))
	}
	outcome := trace.Failed
	switch {
	case broken:
		outcome = trace.Panicked
		a.logger().Error("Observed a panic", "panic", fmt.Sprint(panicked.Value), "stack", string(panicked.Stack))
	case ctx.Err() != nil:
		return trace.Stopped, 0
	case IsTerminal(err):
		c.queue.Forget(item.Key)
		a.logger().Error("Reconciler error", "error", err)
		return trace.Terminal, 0
	case timedOut:
		outcome = trace.TimedOut
	case isQuiet(err):
		outcome = trace.Conflicted
	}
	order := queue.AddOptions{Priority: item.Priority}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		order.After = time.Duration(seconds) * time.Second
	}
	after, ok := c.queue.Retry(item.Key, order)
	switch {
	case !ok:
		a.logger().Error("Reconciler error, given up until something changes", "error", err, "attempts", item.Failures+1)
		return trace.GaveUp, 0
	case outcome == trace.Conflicted:
		a.logger().Debug("Another write was faster; retrying", "error", err)
	case outcome != trace.Panicked:
		a.logger().Error("Reconciler error", "error", err, "retryIn", after.String())
	}
	return outcome, after
}

func (c *controller[K]) settleResult(item *queue.Item[K], result Result) (trace.Outcome, time.Duration) {
	switch result.kind {
	case resultRetry:
		after, ok := c.queue.Retry(item.Key, queue.AddOptions{Priority: item.Priority})
		if !ok {
			return trace.GaveUp, 0
		}
		return trace.Again, after
	case resultAfter, resultWaitUntil:
		after, _ := result.Delay()
		c.queue.Forget(item.Key)
		c.queue.Add(item.Key, queue.AddOptions{
			After: after, Priority: item.Priority, Cause: trace.Cause{Type: trace.Delayed},
		})
		return trace.Requeued, after
	}
	c.queue.Forget(item.Key)
	return trace.Done, 0
}
