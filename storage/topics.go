// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"iter"
	"slices"
	"strings"
	"sync"
)

// topics are the groups of waiting cursors, by the prefix of names that they follow, up
// to its last slash. A write wakes the topics of its name, not those of other
// namespaces.
type topics struct {
	byPrefix map[string]*topic
	// filtered are topics with a WakeOn filter, of one cursor each.
	filtered []*topic
}

// topic is the group of waiting cursors of one prefix.
type topic struct {
	prefix  string
	cursors int
	// last is the newest revision of an event of the topic, dropped the newest one that
	// is not kept any more.
	last, dropped Revision

	// wakeOn is [Range.WakeOn].
	wakeOn func(Event) bool

	// arming guards wakeup among readers, who share the store's lock.
	arming sync.Mutex
	wakeup *wakeup
}

// wakeup is fired by the first event of the topic after its creation; at is the revision
// of that event: the waiting cursors have missed none before it.
type wakeup struct {
	fired chan struct{}
	at    Revision
}

// join adds a cursor to the topic of a prefix.
func (ts *topics) join(prefix string, wakeOn func(Event) bool, last, dropped Revision) *topic {
	if wakeOn != nil {
		t := &topic{prefix: prefix, wakeOn: wakeOn, cursors: 1, last: last, dropped: dropped}
		ts.filtered = append(ts.filtered, t)
		return t
	}
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
	t.cursors--
	switch {
	case t.cursors > 0:
	case t.wakeOn != nil:
		ts.filtered = slices.DeleteFunc(ts.filtered, func(other *topic) bool { return other == t })
	default:
		delete(ts.byPrefix, t.prefix)
	}
}

// following yields the topics that follow a name.
func (ts *topics) following(name string) iter.Seq[*topic] {
	return func(yield func(*topic) bool) {
		for _, t := range ts.filtered {
			if strings.HasPrefix(name, t.prefix) && !yield(t) {
				return
			}
		}
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

// publish wakes the cursors of the topic, unless WakeOn passes the event over.
func (t *topic) publish(e Event) {
	if t.wakeOn != nil && t.wakeup != nil && !t.wakeOn(e) {
		return
	}
	t.fire(e.Record.Modified)
}

func (t *topic) fire(rev Revision) {
	t.last = rev
	if t.wakeup != nil {
		t.wakeup.at = rev
		close(t.wakeup.fired)
		t.wakeup = nil
	}
}

// lose wakes every cursor, which has lost events up to a revision.
func (ts *topics) lose(rev Revision) {
	for _, t := range ts.byPrefix {
		t.dropped = rev
		t.fire(rev)
	}
	for _, t := range ts.filtered {
		t.dropped = rev
		t.fire(rev)
	}
}

func (ts *topics) wakeAll() {
	for _, t := range ts.byPrefix {
		t.fire(t.last)
	}
	for _, t := range ts.filtered {
		t.fire(t.last)
	}
}

// arm returns a wakeup that the next event of the topic closes.
func (t *topic) arm() *wakeup {
	t.arming.Lock()
	defer t.arming.Unlock()
	if t.wakeup == nil {
		t.wakeup = &wakeup{fired: make(chan struct{})}
	}
	return t.wakeup
}

// disarm ends the waiting of a cursor with a filter, and reports whether it was still
// waiting: then all events meanwhile were passed over.
func (t *topic) disarm() bool {
	if t.wakeOn == nil {
		return false
	}
	t.arming.Lock()
	defer t.arming.Unlock()
	waited := t.wakeup != nil
	t.wakeup = nil
	return waited
}
