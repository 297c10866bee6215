// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

// heap is a 4-ary min-heap of entries by time, then by order of arrival. Times
// lie in the nodes, so that finding a place touches the nodes alone.
//
// An entry that is dropped leaves its node behind: a node counts only while its
// entry has the node's order. The first node always counts, and at least every
// other one does.
type heap[K comparable] struct {
	nodes   []node[K]
	dropped int
}

type node[K comparable] struct {
	at    int64
	order uint64 // not 0; no two nodes of a core have the same
	entry *entry[K]
}

func (n *node[K]) counts() bool { return n.entry.order == n.order }

func (n *node[K]) before(m *node[K]) bool {
	return n.at < m.at || n.at == m.at && n.order < m.order
}

func (h *heap[K]) len() int { return len(h.nodes) - h.dropped }

func (h *heap[K]) push(e *entry[K], at int64, order uint64) {
	e.order = order
	h.nodes = append(h.nodes, node[K]{at, order, e})
	h.up(len(h.nodes) - 1)
}

// pop takes the first entry of a heap that is not empty.
func (h *heap[K]) pop() *entry[K] {
	e := h.nodes[0].entry
	e.order = 0
	h.cut()
	h.settle()
	return e
}

// drop takes the entry out, wherever it is.
func (h *heap[K]) drop(e *entry[K]) {
	e.order = 0
	h.dropped++
	h.settle()
}

// settle makes the first node count, and the nodes few.
func (h *heap[K]) settle() {
	if h.dropped == 0 {
		return
	}
	for len(h.nodes) > 0 && !h.nodes[0].counts() {
		h.cut()
		h.dropped--
	}
	if 2*h.dropped <= len(h.nodes) {
		return
	}
	kept := h.nodes[:0]
	for _, n := range h.nodes {
		if n.counts() {
			kept = append(kept, n)
		}
	}
	clear(h.nodes[len(kept):])
	h.nodes, h.dropped = kept, 0
	for i := len(kept)/4 + 1; i >= 0; i-- {
		if i < len(kept) {
			h.down(i)
		}
	}
}

// cut removes the first node.
func (h *heap[K]) cut() {
	last := len(h.nodes) - 1
	h.nodes[0] = h.nodes[last]
	h.nodes[last] = node[K]{}
	h.nodes = h.nodes[:last]
	if last > 1 {
		h.down(0)
	}
}

func (h *heap[K]) up(i int) {
	n := h.nodes[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !n.before(&h.nodes[parent]) {
			break
		}
		h.nodes[i] = h.nodes[parent]
		i = parent
	}
	h.nodes[i] = n
}

func (h *heap[K]) down(i int) {
	n := h.nodes[i]
	for {
		least := 4*i + 1
		if least >= len(h.nodes) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(h.nodes)); c++ {
			if h.nodes[c].before(&h.nodes[least]) {
				least = c
			}
		}
		if !h.nodes[least].before(&n) {
			break
		}
		h.nodes[i] = h.nodes[least]
		i = least
	}
	h.nodes[i] = n
}
