// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"time"
)

// Waiting is a key that waits to run.
type Waiting[K comparable] struct {
	Key K
	// At is since when it is ready, or when it is due.
	At time.Time
	// Failures in a row before the run that it waits for.
	Failures int
}

// Pending is what waits in a queue at a moment: how many keys in all, and the first of them
// in the order in which they run.
type Pending[K comparable] struct {
	// Ready wait for a worker, or for the end of their own run. BackingOff failed, and are
	// due after a pause. Delayed were added with a delay.
	Ready, BackingOff, Delayed          []Waiting[K]
	AllReady, AllBackingOff, AllDelayed int
}

// Pending lists what waits, at most so many of each. It looks at every key that waits.
func (q *Queue[K]) Pending(most int) Pending[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	ready, failed, delayed := q.core.first(most)
	return Pending[K]{
		Ready: q.waiting(ready.nodes), BackingOff: q.waiting(failed.nodes), Delayed: q.waiting(delayed.nodes),
		AllReady: ready.all, AllBackingOff: failed.all, AllDelayed: delayed.all,
	}
}

func (q *Queue[K]) waiting(nodes []node[K]) []Waiting[K] {
	out := make([]Waiting[K], len(nodes))
	for i := range nodes {
		e := nodes[i].entry
		out[i] = Waiting[K]{e.key, q.start.Add(time.Duration(e.since)), int(e.failures)}
	}
	return out
}

// first are the nodes that come first, of all that were added.
type first[K comparable] struct {
	nodes     []node[K]
	most, all int
}

func (f *first[K]) add(n node[K]) {
	f.all++
	if len(f.nodes) == f.most {
		if f.most == 0 || !n.before(&f.nodes[f.most-1]) {
			return
		}
		f.nodes = f.nodes[:f.most-1]
	}
	at, _ := slices.BinarySearchFunc(f.nodes, n, func(a, b node[K]) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	f.nodes = slices.Insert(f.nodes, at, n)
}

// first finds the keys that are ready, those that back off, and those that are delayed
// without a failure.
func (c *core[K]) first(most int) (now, failed, late first[K]) {
	now.most, failed.most, late.most = most, most, most
	for _, e := range c.running {
		if e.pending == ready { // it is in no line before its run has ended
			now.add(node[K]{c.deadline(e), 0, e})
		}
	}
	lines := [][]node[K]{c.ready.heap.nodes}
	for i := range c.ready.lanes {
		lines = append(lines, c.ready.lanes[i].nodes[c.ready.lanes[i].head:])
	}
	for _, nodes := range lines {
		for i := range nodes {
			if nodes[i].counts() {
				now.add(nodes[i])
			}
		}
	}
	for i := range c.delayed.nodes {
		switch n := &c.delayed.nodes[i]; {
		case !n.counts():
		case n.entry.failures > 0:
			failed.add(*n)
		default:
			late.add(*n)
		}
	}
	return now, failed, late
}
