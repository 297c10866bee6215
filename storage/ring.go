// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

// ring is a queue that reuses its memory and releases it when it shrinks.
type ring[T any] struct {
	items []T // the length is a power of two, or nil
	head  int
	n     int
}

func (r *ring[T]) len() int { return r.n }

// at returns the i-th oldest item.
func (r *ring[T]) at(i int) *T { return &r.items[(r.head+i)&(len(r.items)-1)] }

func (r *ring[T]) push(v T) {
	if r.n == len(r.items) {
		r.resize(max(4, 2*r.n))
	}
	r.n++
	*r.at(r.n - 1) = v
}

func (r *ring[T]) pop() T {
	p := r.at(0)
	v := *p
	var zero T
	*p = zero
	r.head = (r.head + 1) & (len(r.items) - 1)
	r.n--
	if len(r.items) > 64 && r.n < len(r.items)/4 {
		r.resize(len(r.items) / 2)
	}
	return v
}

func (r *ring[T]) resize(size int) {
	items := make([]T, size)
	for i := range r.n {
		items[i] = *r.at(i)
	}
	r.items, r.head = items, 0
}
