// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"net/http"
	"strings"

	"github.com/steer-dev/steer/storage"
)

// outbox hands out the requests of one step: to one sender, one after the other,
// and from [outbox.spread] on to several, by lanes. It is not safe for concurrent
// use.
type outbox struct {
	requests []Request
	one      [1]int // what the first sender got last
	taken    int    // how many it got before the rest was spread

	isSpread bool
	own      []int   // the rest of the lane that the first sender is in
	lanes    [][]int // those that no sender has taken
}

// take returns the positions of the requests that a sender sends next, in that
// order; none: nothing is left for it. first names the sender that began.
func (o *outbox) take(first bool) []int {
	if !o.isSpread {
		if o.taken == len(o.requests) {
			return nil
		}
		o.one[0] = o.taken
		o.taken++
		return o.one[:]
	}
	if first && len(o.own) > 0 {
		own := o.own
		o.own = nil
		return own
	}
	if len(o.lanes) == 0 {
		return nil
	}
	lane := o.lanes[0]
	o.lanes = o.lanes[1:]
	return lane
}

// spread lets several senders take what is left while the first one is held up
// with the request that it took last. It returns how many more can have something to do.
func (o *outbox) spread() int {
	if o.isSpread {
		return 0
	}
	o.isSpread = true
	from := max(o.taken-1, 0)
	o.lanes = lanesOf(o.requests, from)
	if o.taken > 0 {
		o.own, o.lanes = o.lanes[0][1:], o.lanes[1:]
	}
	return len(o.lanes)
}

// lanesOf divides requests, from a position on, into lanes: the positions of those
// that have to go out in their order. Requests are in one lane if they have one
// subject, or if the path of one is that of the other or leads to it, as the path of
// an object leads to its status; only creations in one collection do not wait for one another.
// Lanes are ordered by their first requests.
func lanesOf(requests []Request, from int) [][]int {
	joined := make([]int, len(requests)) // to a smaller position of the same lane, or itself
	root := func(i int) int {
		for joined[i] != i {
			joined[i] = joined[joined[i]]
			i = joined[i]
		}
		return i
	}
	join := func(i, j int) {
		i, j = root(i), root(j)
		joined[max(i, j)] = min(i, j)
	}
	subjects, paths := map[storage.Key]int{}, map[string]int{}
	for i := from; i < len(requests); i++ {
		joined[i] = i
		r := &requests[i]
		if j, ok := subjects[r.Subject.Key]; ok {
			join(i, j)
		} else {
			subjects[r.Subject.Key] = i
		}
		if _, ok := paths[r.Path]; !ok && r.Method != http.MethodPost {
			paths[r.Path] = i
		}
	}
	for i := from; i < len(requests); i++ {
		for path := requests[i].Path; path != ""; path = path[:max(strings.LastIndexByte(path, '/'), 0)] {
			if j, ok := paths[path]; ok {
				join(i, j)
			}
		}
	}
	var lanes [][]int
	at := map[int]int{} // positions of lanes by their roots
	for i := from; i < len(requests); i++ {
		k, ok := at[root(i)]
		if !ok {
			k = len(lanes)
			at[root(i)] = k
			lanes = append(lanes, nil)
		}
		lanes[k] = append(lanes[k], i)
	}
	return lanes
}
