// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"iter"
	"strings"
	"sync"
)

// topics are the places where cursors wait, by the part of the names that they
// ask for, up to its last slash. A write wakes the topics of its name, not
// those of other namespaces.
type topics struct {
	byPrefix map[string]*topic
}

// topic is where the cursors of one prefix wait.
type topic struct {
	prefix  string
	cursors int
	// last is the newest revision that concerns the topic, dropped the newest one
	// that is not kept any more.
	last, dropped Revision

	// arming guards wake among readers, who hold the store's lock shared.
	arming sync.Mutex
	wake   *wake
}

// wake is closed by the first event after it was made, at that revision: who
// waited for it has missed nothing before.
type wake struct {
	fired chan struct{}
	at    Revision
}

// join returns the topic of a prefix for one more cursor.
func (ts *topics) join(prefix string, last, dropped Revision) *topic {
	prefix = prefix[:strings.LastIndexByte(prefix, '/')+1]
	t := ts.byPrefix[prefix]
	if t == nil {
		if ts.byPrefix == nil {
			ts.byPrefix = map[string]*topic{}
		}
		t = &topic{prefix: prefix, last: last, dropped: dropped}
		ts.byPrefix[prefix] = t
	}
	t.cursors++
	return t
}

func (ts *topics) leave(t *topic) {
	if t.cursors--; t.cursors == 0 {
		delete(ts.byPrefix, t.prefix)
	}
}

// of yields the topics that a name concerns.
func (ts *topics) of(name string) iter.Seq[*topic] {
	return func(yield func(*topic) bool) {
		if len(ts.byPrefix) == 0 {
			return
		}
		for i := 0; ; {
			if t := ts.byPrefix[name[:i]]; t != nil && !yield(t) {
				return
			}
			slash := strings.IndexByte(name[i:], '/')
			if slash < 0 {
				return
			}
			i += slash + 1
		}
	}
}

func (t *topic) publish(rev Revision) {
	t.last = rev
	if t.wake != nil {
		t.wake.at = rev
		close(t.wake.fired)
		t.wake = nil
	}
}

func (ts *topics) wakeAll() {
	for _, t := range ts.byPrefix {
		t.publish(t.last)
	}
}

// arm returns what the next event of the topic closes.
func (t *topic) arm() *wake {
	t.arming.Lock()
	defer t.arming.Unlock()
	if t.wake == nil {
		t.wake = &wake{fired: make(chan struct{})}
	}
	return t.wake
}
