// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"iter"
	"net/http"
	"strings"

	"github.com/steer-dev/steer/storage"
)

// call is one request until its outcome is reported.
type call struct {
	request Request
	batch   *batch
	number  int   // in the order in which the controller asked
	begun   bool  // whether a sender has it
	err     error // the outcome, once the call has ended
	waits   int   // earlier calls that have to end before
	next    []*call
}

// order keeps calls that have not ended in the order in which they have to go out. A call
// waits for the earlier ones that have the same subject, and for those whose path is the
// same or leads to its own or the other way round, as the path of an object leads to that
// of its status. Only creations in one collection do not wait for one another. It is not
// safe for concurrent use.
type order struct {
	subjects map[storage.Key]*call // the last call about each
	exact    map[string]callSet    // all but creations, by path
	below    map[string]callSet    // all, by their paths and by those that lead to them
}

type callSet map[*call]struct{}

func newOrder() order {
	return order{subjects: map[storage.Key]*call{}, exact: map[string]callSet{}, below: map[string]callSet{}}
}

// add takes in the newest call.
func (o *order) add(c *call) {
	path, waits := c.request.Path, callSet{}
	if last := o.subjects[c.request.Subject.Key]; last != nil {
		waits[last] = struct{}{}
	}
	o.subjects[c.request.Subject.Key] = c
	if c.request.Method != http.MethodPost {
		for other := range o.below[path] {
			waits[other] = struct{}{}
		}
	}
	for p := range leading(path) {
		for other := range o.exact[p] {
			waits[other] = struct{}{}
		}
		put(o.below, p, c)
	}
	if c.request.Method != http.MethodPost {
		put(o.exact, path, c)
	}
	c.waits = len(waits)
	for other := range waits {
		other.next = append(other.next, c)
	}
}

// end removes a call that has ended, and returns those that waited for it alone.
func (o *order) end(c *call) []*call {
	if o.subjects[c.request.Subject.Key] == c {
		delete(o.subjects, c.request.Subject.Key)
	}
	remove(o.exact, c.request.Path, c)
	for p := range leading(c.request.Path) {
		remove(o.below, p, c)
	}
	var released []*call
	for _, other := range c.next {
		if other.waits--; other.waits == 0 {
			released = append(released, other)
		}
	}
	return released
}

// leading yields a path, and the paths of which it is a part.
func leading(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for path != "" && yield(path) {
			path = path[:max(strings.LastIndexByte(path, '/'), 0)]
		}
	}
}

func put(sets map[string]callSet, path string, c *call) {
	if sets[path] == nil {
		sets[path] = callSet{}
	}
	sets[path][c] = struct{}{}
}

func remove(sets map[string]callSet, path string, c *call) {
	if delete(sets[path], c); len(sets[path]) == 0 {
		delete(sets, path)
	}
}
