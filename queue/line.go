// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "slices"

// line holds the ready entries by deadline. Those of one priority become ready one
// after the other, nearly always, so each of a few priorities has a lane that is in
// order without sorting. What does not fit in is in a heap.
type line[K comparable] struct {
	lanes []lane[K]
	heap  heap[K]
}

// maxLanes is how many priorities have a lane.
const maxLanes = 4

// lane is a queue of nodes, each before the next. As in a heap, what is dropped
// leaves its node behind; the first node counts.
type lane[K comparable] struct {
	priority int32
	nodes    []node[K]
	head     int // the nodes before it are gone
	dropped  int
}

// inHeap is the lane of an entry that has none.
const inHeap = -1

func (l *line[K]) len() int {
	n := l.heap.len()
	for i := range l.lanes {
		n += len(l.lanes[i].nodes) - l.lanes[i].head - l.lanes[i].dropped
	}
	return n
}

func (l *line[K]) push(e *entry[K], at int64, order uint64) {
	if e.lane = int8(l.laneFor(e.priority, at)); e.lane == inHeap {
		l.heap.push(e, at, order)
		return
	}
	e.order = order
	l.lanes[e.lane].push(node[K]{at, order, e})
}

// laneFor is where a node of the time belongs.
func (l *line[K]) laneFor(priority int32, at int64) int {
	unused := inHeap
	for i := range l.lanes {
		switch of := &l.lanes[i]; {
		case of.empty():
			unused = i
			if of.priority == priority {
				return i
			}
		case of.priority == priority:
			if of.nodes[len(of.nodes)-1].at <= at {
				return i
			}
			return inHeap
		}
	}
	if unused == inHeap && len(l.lanes) < maxLanes {
		l.lanes = append(l.lanes, lane[K]{})
		unused = len(l.lanes) - 1
	}
	if unused != inHeap {
		l.lanes[unused].priority = priority
	}
	return unused
}

// pop takes the first entry, or returns nil when there is none.
func (l *line[K]) pop() *entry[K] {
	var first *node[K]
	at := inHeap
	if len(l.heap.nodes) > 0 {
		first = &l.heap.nodes[0]
	}
	for i := range l.lanes {
		if of := &l.lanes[i]; !of.empty() && (first == nil || of.nodes[of.head].before(first)) {
			first, at = &of.nodes[of.head], i
		}
	}
	switch {
	case first == nil:
		return nil
	case at == inHeap:
		return l.heap.pop()
	}
	e := first.entry
	e.order = 0
	l.lanes[at].cut()
	l.lanes[at].settle()
	return e
}

// drop takes the entry out, wherever it is.
func (l *line[K]) drop(e *entry[K]) {
	if e.lane == inHeap {
		l.heap.drop(e)
		return
	}
	e.order = 0
	of := &l.lanes[e.lane]
	of.dropped++
	of.settle()
}

func (l *lane[K]) empty() bool { return l.head == len(l.nodes) }

func (l *lane[K]) push(n node[K]) {
	if len(l.nodes) == cap(l.nodes) && 2*l.head >= len(l.nodes) {
		l.nodes, l.head = slices.Delete(l.nodes, 0, l.head), 0
	}
	l.nodes = append(l.nodes, n)
}

// cut removes the first node.
func (l *lane[K]) cut() {
	l.nodes[l.head] = node[K]{}
	if l.head++; l.empty() {
		l.nodes, l.head = l.nodes[:0], 0
	}
}

// settle makes the first node count, and the nodes few.
func (l *lane[K]) settle() {
	if l.dropped == 0 {
		return
	}
	for !l.empty() && !l.nodes[l.head].counts() {
		l.cut()
		l.dropped--
	}
	if 2*l.dropped > len(l.nodes)-l.head {
		l.nodes = slices.DeleteFunc(slices.Delete(l.nodes, 0, l.head), func(n node[K]) bool { return !n.counts() })
		l.head, l.dropped = 0, 0
	}
}
