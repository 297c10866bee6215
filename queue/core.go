// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/steer-dev/steer/trace"
)

// core is the queue as a state machine: it has no clock, no lock and no
// goroutine. Times are nanoseconds since an arbitrary start and must not
// decrease from call to call.
//
// A key is delayed or ready in at most one place. Its pending state reports whether and when it
// wants to run next; whether it runs now is independent of that:
//
//	idle ----add after d----> delayed --due, or add now--> ready --take--> idle, running
//	  \---------add now-------------------------------------^
//
// A ready key that still runs is in no line: it enters when it is done.
type core[K comparable] struct {
	entries table[K]
	ready   line[K] // by deadline
	delayed heap[K] // by due time
	running []*entry[K]
	depth   []Depth
	order   uint64
	free    []*entry[K]

	// failing counts the keys with failures. It alone is read without the queue's lock.
	failing atomic.Int64

	ageStep int64
	adds    uint64
	retries uint64
}

// maxFree bounds the entries that are kept for reuse: enough for steady
// load, and not for the burst of a start, of which every queue would keep 100 KB.
const maxFree = 16

// maxDepths bounds the priorities that are counted although no key has them.
const maxDepths = 16

type pending uint8

const (
	idle pending = iota
	delayed
	ready
)

// entry is what the queue knows about one key. A key without an entry is idle,
// does not run and has not failed.
//
// What a trip through the queue needs lies together: with ten thousand keys waiting, none of it is
// in the processor's cache.
type entry[K comparable] struct {
	key  K
	hash uint64

	since       int64  // delayed: when it is due; ready: since when it is
	order       uint64 // of its node where it is pending, or 0
	started     int64
	priority    int32 // of the pending run
	runPriority int32
	runningAt   int32 // place in core.running
	failures    int32
	lane        int8 // of a ready entry: the lane with its node
	pending     pending
	runs        bool

	// causes are two sets: the one at next is of the pending run, the other of the
	// run in progress.
	causes [2]trace.Causes
	next   uint8
}

func (e *entry[K]) pendingCauses() *trace.Causes { return &e.causes[e.next] }

func (e *entry[K]) currentCauses() *trace.Causes { return &e.causes[1-e.next] }

func newCore[K comparable](ageStep time.Duration) core[K] {
	return core[K]{entries: newTable[K](), ageStep: int64(ageStep)}
}

// deadline orders ready keys: a point of priority is worth one age step of
// waiting. It is fixed when a key becomes ready, and what comes later has later
// deadlines, so everything is taken in the end.
func (c *core[K]) deadline(e *entry[K]) int64 {
	return e.since - int64(e.priority)*c.ageStep
}

// add wants key to run at the given time and reports whether a key entered the
// line.
func (c *core[K]) add(now, at int64, key K, wanted int, cause *trace.Cause) bool {
	e := c.entry(key)
	priority := int32(max(min(wanted, math.MaxInt32), math.MinInt32))
	causes := e.pendingCauses()
	switch {
	case e.pending == idle:
		e.priority = priority
		e.since = at
		c.adds++
		causes.Add(*cause)
		if at > now {
			e.pending = delayed
			c.pushDelayed(e, at)
			return false
		}
		return c.makeReady(e, now)
	case e.pending == delayed && at <= now:
		c.delayed.drop(e)
		if onlyTimed(causes) {
			causes.Reset() // its time has not come: it is not why the key runs
		}
		causes.Add(*cause)
		e.priority = max(e.priority, priority)
		return c.makeReady(e, now)
	case e.pending == delayed:
		causes.Add(*cause)
		e.priority = max(e.priority, priority)
		if at < e.since {
			c.delayed.drop(e)
			e.since = at
			c.pushDelayed(e, at)
		}
	case e.pending == ready:
		if at > now && timed(cause) {
			return false // it runs before that, and decides anew
		}
		causes.Add(*cause)
		c.raise(e, priority)
	}
	return false
}

// makeReady moves the entry from whatever it was pending to ready since then.
func (c *core[K]) makeReady(e *entry[K], since int64) bool {
	e.pending = ready
	e.since = since
	c.count(e.priority, 1)
	if e.runs {
		return false
	}
	c.pushReady(e)
	return true
}

// raise gives a ready entry a higher priority.
func (c *core[K]) raise(e *entry[K], priority int32) {
	if priority <= e.priority {
		return
	}
	c.count(e.priority, -1)
	c.count(priority, 1)
	e.priority = priority
	if !e.runs {
		c.ready.drop(e)
		c.pushReady(e)
	}
}

// promote makes the delayed keys ready whose time has come and returns how many
// entered the line.
func (c *core[K]) promote(now int64) (entered int) {
	for len(c.delayed.nodes) > 0 && c.delayed.nodes[0].at <= now {
		e := c.delayed.pop()
		if c.makeReady(e, e.since) {
			entered++
		}
	}
	return entered
}

// due returns when the next delayed key becomes ready.
func (c *core[K]) due() (int64, bool) {
	if len(c.delayed.nodes) == 0 {
		return 0, false
	}
	return c.delayed.nodes[0].at, true
}

// take starts the next key, or returns nil when none is ready.
func (c *core[K]) take(now int64) *entry[K] {
	e := c.ready.pop()
	if e == nil {
		return nil
	}
	c.count(e.priority, -1)
	e.pending = idle
	e.runs = true
	e.started = now
	e.runPriority = e.priority
	e.runningAt = int32(len(c.running))
	c.running = append(c.running, e)
	e.next = 1 - e.next
	return e
}

// done ends the run of key. It reports how long it ran, for which alone it needs
// to know the time, whether it ran at all, and whether the key entered the line again.
func (c *core[K]) done(now int64, key K) (ran time.Duration, ok, entered bool) {
	e := c.runningEntry(key)
	if e == nil {
		return 0, false, false
	}
	e.runs = false
	last := len(c.running) - 1
	c.running[e.runningAt] = c.running[last]
	c.running[e.runningAt].runningAt = e.runningAt
	c.running[last] = nil
	c.running = c.running[:last]
	ran = time.Duration(now - e.started)
	e.currentCauses().Reset()
	if e.pending == ready {
		c.pushReady(e)
		return ran, true, true
	}
	c.release(e)
	return ran, true, false
}

// fail counts a failure of key in a row and returns how many there were.
func (c *core[K]) fail(key K) int {
	e := c.entry(key)
	if e.failures == 0 {
		c.failing.Add(1)
	}
	e.failures++
	return int(e.failures)
}

// forget ends the row of failures.
func (c *core[K]) forget(key K) {
	e := c.runningEntry(key)
	if e == nil {
		e = c.find(key)
	}
	if e != nil && e.failures > 0 {
		e.failures = 0
		c.failing.Add(-1)
		c.release(e)
	}
}

// drop forgets everything that is pending; runs in progress go on.
func (c *core[K]) drop() {
	for _, e := range c.entries.all() {
		if e.pending == ready {
			c.count(e.priority, -1)
		}
		e.pending, e.order = idle, 0
		e.pendingCauses().Reset()
		c.release(e)
	}
	c.ready, c.delayed = line[K]{}, heap[K]{}
}

// dropDelayed forgets what is not ready yet.
func (c *core[K]) dropDelayed() {
	for len(c.delayed.nodes) > 0 {
		e := c.delayed.pop()
		e.pending = idle
		e.pendingCauses().Reset()
		c.release(e)
	}
}

// waiting counts the keys that will run without a further add: ready ones,
// including those that wait for their own run to end.
func (c *core[K]) waiting() (n int) {
	for _, d := range c.depth {
		n += d.Keys
	}
	return n
}

// maxScanned is up to how many running keys are compared with one, instead of
// looking it up.
const maxScanned = 8

// runningEntry returns the entry of key if it runs.
func (c *core[K]) runningEntry(key K) *entry[K] {
	if len(c.running) > maxScanned {
		if e := c.find(key); e != nil && e.runs {
			return e
		}
		return nil
	}
	for _, e := range c.running {
		if e.key == key {
			return e
		}
	}
	return nil
}

// find returns the entry of key, or nil.
func (c *core[K]) find(key K) *entry[K] { return c.entries.find(key, c.entries.hash(key)) }

// entry returns the entry of key and makes one if need be.
func (c *core[K]) entry(key K) *entry[K] {
	hash := c.entries.hash(key)
	e := c.entries.find(key, hash)
	if e != nil {
		return e
	}
	if n := len(c.free); n > 0 {
		e = c.free[n-1]
		c.free[n-1] = nil
		c.free = c.free[:n-1]
	} else {
		e = &entry[K]{}
	}
	e.key, e.hash = key, hash
	c.entries.insert(e)
	return e
}

// release removes an entry that tells nothing any more.
func (c *core[K]) release(e *entry[K]) {
	if e.pending != idle || e.runs || e.failures > 0 {
		return
	}
	c.entries.remove(e)
	if len(c.free) < maxFree {
		var zero K
		e.key = zero
		c.free = append(c.free, e)
	}
}

func (c *core[K]) pushDelayed(e *entry[K], at int64) {
	c.order++
	c.delayed.push(e, at, c.order)
}

func (c *core[K]) pushReady(e *entry[K]) {
	c.order++
	c.ready.push(e, c.deadline(e), c.order)
}

func (c *core[K]) count(of int32, n int) {
	priority := int(of)
	for i := range c.depth {
		if c.depth[i].Priority == priority {
			c.depth[i].Keys += n
			if c.depth[i].Keys == 0 && len(c.depth) > maxDepths {
				c.depth = slices.Delete(c.depth, i, i+1)
			}
			return
		}
	}
	c.depth = append(c.depth, Depth{Priority: priority, Keys: n})
}

// onlyTimed reports that nothing but the passing of time is behind a pending run.
func onlyTimed(causes *trace.Causes) bool {
	for c := range causes.All() {
		if !timed(&c) {
			return false
		}
	}
	return true
}

func timed(c *trace.Cause) bool { return c.Type == trace.Delayed || c.Type == trace.Retried }
