// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

// heap is a 4-ary min-heap of entries by time, then by order of arrival. Times
// lie in the nodes, so that finding a place touches few cache lines; every entry
// knows its place, so that it can be moved or removed.
type heap[K comparable] struct {
	nodes []node[K]
}

type node[K comparable] struct {
	at    int64
	order uint64
	entry *entry[K]
}

func (n *node[K]) before(m *node[K]) bool {
	return n.at < m.at || n.at == m.at && n.order < m.order
}

func (h *heap[K]) push(e *entry[K], at int64, order uint64) {
	h.nodes = append(h.nodes, node[K]{at, order, e})
	h.up(len(h.nodes) - 1)
}

// remove takes the entry out of its place.
func (h *heap[K]) remove(e *entry[K]) {
	i, last := e.place, len(h.nodes)-1
	moved := h.nodes[last]
	h.nodes[last] = node[K]{}
	h.nodes = h.nodes[:last]
	if i == last {
		return
	}
	h.nodes[i] = moved
	h.down(i)
	h.up(moved.entry.place)
}

func (h *heap[K]) up(i int) {
	n := h.nodes[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !n.before(&h.nodes[parent]) {
			break
		}
		h.set(i, h.nodes[parent])
		i = parent
	}
	h.set(i, n)
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
		h.set(i, h.nodes[least])
		i = least
	}
	h.set(i, n)
}

func (h *heap[K]) set(i int, n node[K]) {
	h.nodes[i] = n
	n.entry.place = i
}
