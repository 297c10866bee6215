// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queue decides what to reconcile next. A [Queue] holds keys of any
// comparable type:
//
//   - a key that is added many times before it runs, runs once;
//   - a key never runs twice at once: added while it runs, it runs again after;
//   - no key is lost, and none starves: waiting counts as much as priority;
//   - a key can come later ([AddOptions].After), the earliest add wins;
//   - failures back off per key ([Queue.Retry]) until they are forgotten
//     ([Queue.Forget]) or given up;
//   - every run knows its causes and how long the key waited.
//
// A worker loops over Get and Done:
//
//	for item, ok := q.Get(); ok; item, ok = q.Get() {
//		if err := work(item.Key); err != nil {
//			q.Retry(item.Key, queue.AddOptions{Priority: item.Priority})
//		} else {
//			q.Forget(item.Key)
//		}
//		q.Done(item.Key)
//	}
//
// The state machine is free of clocks, locks and goroutines; the Queue adds a
// mutex, a condition and one timer. The package clientgo below it presents a
// Queue as a client-go work queue.
package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/steer-dev/steer/trace"
)

// LowPriority is meant for what is not urgent: objects that were there when a
// watch began, and resyncs. With the default age step it stands back behind
// what arrived up to ten seconds later.
const LowPriority = -100

// defaultAgeStep is what one point of priority is worth.
const defaultAgeStep = 100 * time.Millisecond

// Observer receives the measurements of a queue that are distributions; the
// rest is in [Stats]. Its methods are called by the workers and must be fast.
type Observer interface {
	// Waited is called when a key starts: how long it was ready before.
	Waited(time.Duration)
	// Worked is called when a key is done: how long it ran.
	Worked(time.Duration)
}

// Options of a [Queue].
type Options[K comparable] struct {
	// Backoff computes the delay of a retry; nil means Exponential(0, 0): 5 ms,
	// doubled up to 5 minutes.
	Backoff Backoff
	// Limiter delays retries as well: the longer of the two delays counts. nil
	// means none.
	Limiter Limiter[K]
	// MaxRetries is how many failures in a row are retried; the next one gives
	// the key up until it is added again. 0 means retry for ever.
	MaxRetries int
	// GaveUp is called when a key is given up, after how many failures, by the
	// goroutine that called Retry. nil is not called.
	GaveUp func(key K, failures int)
	// AgeStep is how much longer waiting one point of priority outweighs.
	// 0 means 100 ms.
	AgeStep time.Duration
	// Observer receives measurements; nil means none.
	Observer Observer
}

// AddOptions describe one add.
type AddOptions struct {
	// After is how long to wait; 0 means run as soon as a worker is free.
	After time.Duration
	// Priority orders the ready keys, higher first. A key that is added several
	// times has the highest of its priorities.
	Priority int
	// Cause tells why. An unknown type becomes Delayed when After is set, and
	// Retried in a Retry.
	Cause trace.Cause
}

// Item is a key that a worker got.
type Item[K comparable] struct {
	Key K
	// Priority with which the key was queued.
	Priority int
	// Failures in a row before this run.
	Failures int
	// Waited is how long the key was ready.
	Waited time.Duration
	// Causes of this run. They belong to the queue: do not use them after Done.
	Causes *trace.Causes
}

// Queue is a queue of keys. All methods are safe for concurrent use. It has no
// goroutine of its own; after Close it holds no timer either.
type Queue[K comparable] struct {
	options Options[K]
	start   time.Time

	mu      sync.Mutex
	changed sync.Cond
	core    core[K]
	timer   *time.Timer
	alarm   int64 // when the timer fires; meaningful while armed
	armed   bool
	refuses bool          // draining or closed
	drained chan struct{} // closed once a drain has nothing left
	idle    chan struct{} // closed once the queue is idle; nil while no goroutine waits
}

// New returns an empty queue.
func New[K comparable](o Options[K]) *Queue[K] {
	if o.Backoff == nil {
		o.Backoff = Exponential(0, 0)
	}
	if o.AgeStep <= 0 {
		o.AgeStep = defaultAgeStep
	}
	q := &Queue[K]{options: o, start: time.Now(), core: newCore[K](o.AgeStep)}
	q.changed.L = &q.mu
	return q
}

// now is the time of the state machine. It is read under the lock, so that it
// never decreases from one transition to the next.
func (q *Queue[K]) now() int64 { return int64(time.Since(q.start)) }

// Add wants key to run. It does nothing once the queue drains or is closed.
func (q *Queue[K]) Add(key K, order AddOptions) {
	if order.After > 0 && order.Cause.Type == trace.Unknown {
		order.Cause.Type = trace.Delayed
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(key, &order)
}

func (q *Queue[K]) add(key K, order *AddOptions) {
	if q.refuses {
		return
	}
	now := q.now()
	if order.After > 0 {
		q.core.retries++
	}
	if q.core.add(now, now+max(int64(order.After), 0), key, order.Priority, &order.Cause) {
		q.changed.Signal()
		return
	}
	q.arm(now)
}

// Retry counts a failure of key and adds it after its back-off, or after
// order.After when that is longer. It returns the delay, and false when the key
// was given up instead: then its failures are forgotten.
func (q *Queue[K]) Retry(key K, order AddOptions) (time.Duration, bool) {
	if order.Cause.Type == trace.Unknown {
		order.Cause.Type = trace.Retried
	}
	if q.options.Limiter != nil { // not under the lock: it may be slow
		order.After = max(order.After, q.options.Limiter.When(key))
	}
	q.mu.Lock()
	failures := q.core.fail(key)
	if q.options.MaxRetries > 0 && failures > q.options.MaxRetries {
		q.core.forget(key)
		q.mu.Unlock()
		if q.options.Limiter != nil {
			q.options.Limiter.Forget(key)
		}
		if q.options.GaveUp != nil {
			q.options.GaveUp(key, failures)
		}
		return 0, false
	}
	order.After = max(order.After, q.options.Backoff(failures))
	q.add(key, &order)
	q.mu.Unlock()
	return order.After, true
}

// Forget ends the row of failures of key. It leaves pending adds alone.
func (q *Queue[K]) Forget(key K) {
	if q.options.Limiter != nil {
		q.options.Limiter.Forget(key)
	}
	if q.core.failing.Load() == 0 {
		return
	}
	q.mu.Lock()
	q.core.forget(key)
	q.mu.Unlock()
}

// Failures returns how many failures in a row key has.
func (q *Queue[K]) Failures(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.core.find(key); e != nil {
		return int(e.failures)
	}
	return 0
}

// Get waits for a key that is ready and starts it. The caller must call Done
// with it. It returns false once the queue is closed, or drains and has nothing
// ready.
func (q *Queue[K]) Get() (Item[K], bool) {
	q.mu.Lock()
	for {
		now := q.now()
		if n := q.core.promote(now); n > 0 {
			q.arm(now)
			for range n - 1 {
				q.changed.Signal()
			}
		}
		if e := q.core.take(now); e != nil {
			item := Item[K]{
				Key: e.key, Priority: int(e.runPriority), Failures: int(e.failures),
				Waited: time.Duration(now - e.since), Causes: e.currentCauses(),
			}
			q.mu.Unlock()
			if q.options.Observer != nil {
				q.options.Observer.Waited(item.Waited)
			}
			return item, true
		}
		if q.refuses {
			q.mu.Unlock()
			return Item[K]{}, false
		}
		q.changed.Wait()
	}
}

// Done ends the run of key. A key that was added meanwhile is ready at once.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	now := int64(0)
	if q.options.Observer != nil {
		now = q.now() // only an observer needs to know how long it ran
	}
	ran, ok, entered := q.core.done(now, key)
	if entered {
		q.changed.Signal()
	}
	q.checkDrained()
	q.checkIdle()
	q.mu.Unlock()
	if ok && q.options.Observer != nil {
		q.options.Observer.Worked(ran)
	}
}

// Drain refuses further adds, forgets what is delayed, lets the workers finish
// what is ready, and waits until they have. When ctx ends first it returns its
// error and the queue stays as it is: Close ends it for good.
func (q *Queue[K]) Drain(ctx context.Context) error {
	q.mu.Lock()
	q.refuses = true
	q.core.dropDelayed()
	q.disarm()
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	drained := q.drained
	q.checkDrained()
	q.changed.Broadcast()
	q.mu.Unlock()
	select {
	case <-drained:
		return nil
	default:
	}
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close forgets everything that is pending and ends all Gets. Runs in progress
// are not waited for. It is idempotent.
func (q *Queue[K]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refuses = true
	q.core.drop()
	q.disarm()
	q.checkDrained()
	q.checkIdle()
	q.changed.Broadcast()
}

// Closed reports whether the queue refuses adds: it drains or is closed.
func (q *Queue[K]) Closed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refuses
}

// checkDrained ends a drain that has nothing left to wait for.
func (q *Queue[K]) checkDrained() {
	if q.drained == nil || len(q.core.running) > 0 || q.core.waiting() > 0 {
		return
	}
	select {
	case <-q.drained:
	default:
		close(q.drained)
	}
}

// arm sets the timer to the next delayed key.
func (q *Queue[K]) arm(now int64) {
	due, ok := q.core.due()
	if !ok || q.armed && q.alarm <= due {
		return
	}
	q.alarm, q.armed = due, true
	if q.timer == nil {
		q.timer = time.AfterFunc(time.Duration(due-now), q.ring)
		return
	}
	q.timer.Reset(time.Duration(due - now))
}

func (q *Queue[K]) disarm() {
	q.armed = false
	if q.timer != nil {
		q.timer.Stop()
	}
}

// ring is what the timer calls.
func (q *Queue[K]) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuses {
		return
	}
	q.armed = false
	now := q.now()
	for range q.core.promote(now) {
		q.changed.Signal()
	}
	q.arm(now)
}

// Depth is the number of ready keys of one priority.
type Depth struct {
	Priority int
	Keys     int
}

// Stats is what a queue counts.
type Stats struct {
	// Adds counts the adds that were not merged into a pending one, Retries all
	// adds with a delay.
	Adds, Retries uint64
	// Depth lists the ready keys by priority, lowest first. Priorities that were
	// used before stay in the list as long as there are few.
	Depth []Depth
	// Delayed and Running count keys.
	Delayed, Running int
	// Unfinished is the sum of the times for which the running keys have run,
	// Longest is the longest of them.
	Unfinished, Longest time.Duration
}

// Stats returns the counts at this moment.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	s := Stats{
		Adds: q.core.adds, Retries: q.core.retries, Depth: slices.Clone(q.core.depth),
		Delayed: q.core.delayed.len(), Running: len(q.core.running),
	}
	for _, e := range q.core.running {
		ran := time.Duration(now - e.started)
		s.Unfinished += ran
		s.Longest = max(s.Longest, ran)
	}
	slices.SortFunc(s.Depth, func(a, b Depth) int { return a.Priority - b.Priority })
	return s
}

// Len counts the ready keys.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.waiting()
}
