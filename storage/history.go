// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"iter"
	"slices"
	"sort"
	"time"
)

// Memory of a kept event, without the values that only it keeps alive, in bytes.
const (
	entryCost  = 64
	recordCost = 160
)

// How views at old revisions are found: a root is kept every rootSpacing events (or
// a quarter of the number of records, if that is more, so that the roots of a full
// history share most of their nodes), and so are the last recentViews views that were
// computed, for readers that page through one.
const (
	rootSpacing = 4096
	recentViews = 4
)

// history keeps the newest events of a mirror within an age and a size, in the order of
// their revisions; every bucket has an index of its events. Revisions may have gaps,
// and one revision may have several events: all of them are kept, or none. All methods
// need the mirror's lock; those that change, the exclusive one.
type history struct {
	maxAge   time.Duration
	maxBytes int

	// entries holds the events of the revisions above base; first is the position of the
	// oldest: positions count the events, without gaps.
	entries ring[entry]
	first   int
	base    Revision
	bytes   int
	// The entries above lag fill three quarters of the bounds. A reader whose next event
	// is at or below lag is about to lose it. lagged is the position of the first above.
	lag      Revision
	lagged   int
	lagBytes int

	// floor is the lowest revision at which any reader can start: the one that the
	// store began with or was compacted to.
	floor   Revision
	buckets map[string]*bucketHistory
	all     topics

	// roots are snapshots at some revisions above base, oldest first, from which
	// older views are computed; recent are views computed that way. unrooted counts the
	// events since the newest root.
	roots    []*view
	recent   []*view
	unrooted int
}

type entry struct {
	Event
	at time.Duration // since the Unix epoch
}

// cost is the memory that dropping the entry frees: the version it replaced and, for a
// deletion, the final one.
func (e *entry) cost() int {
	n := entryCost
	if e.Previous != nil {
		n += recordCost + len(e.Previous.Value)
	}
	if e.Deleted {
		n += recordCost + len(e.Record.Value)
	}
	return n
}

// bucketHistory is the history of one bucket.
type bucketHistory struct {
	// marks are the kept events of the bucket.
	marks ring[mark]
	// dropped is the newest revision with an event that is not kept any more.
	dropped Revision
	topics  topics
}

// mark is the place of an event in the history.
type mark struct {
	revision Revision
	position int
}

// newest returns the newest revision that changed the bucket, 0 for none.
func (f *bucketHistory) newest() Revision {
	if n := f.marks.len(); n > 0 {
		return f.marks.at(n - 1).revision
	}
	return f.dropped
}

// above returns the index of the first mark above a revision.
func (f *bucketHistory) above(rev Revision) int {
	return sort.Search(f.marks.len(), func(i int) bool { return f.marks.at(i).revision > rev })
}

func newHistory(base Revision, maxAge time.Duration, maxBytes int) history {
	return history{maxAge: maxAge, maxBytes: maxBytes, base: base, lag: base, floor: base}
}

// end returns the position after the newest event.
func (h *history) end() int { return h.first + h.entries.len() }

func (h *history) entry(position int) *entry { return h.entries.at(position - h.first) }

// above returns the position of the first event above a revision.
func (h *history) above(rev Revision) int {
	return h.first + sort.Search(h.entries.len(), func(i int) bool { return h.entries.at(i).Record.Modified > rev })
}

// append adds the events of one revision, which is above all others, and wakes the
// cursors that wait for them.
func (h *history) append(events []Event, at time.Time) {
	for _, e := range events {
		ent := entry{Event: e, at: time.Duration(at.UnixNano())}
		h.entries.push(ent)
		cost := ent.cost()
		h.bytes += cost
		h.lagBytes += cost

		f := h.bucket(e.Record.Key.Bucket)
		f.marks.push(mark{e.Record.Modified, h.end() - 1})
		for t := range f.topics.following(e.Record.Key.Name) {
			t.publish(e)
		}
		for t := range h.all.following(e.Record.Key.Name) {
			t.publish(e)
		}
	}
	h.unrooted += len(events)
	h.trim(at)
}

// trim drops the revisions beyond the bounds.
func (h *history) trim(now time.Time) {
	at := time.Duration(now.UnixNano())
	for h.entries.len() > 0 && (h.bytes > h.maxBytes || at-h.entry(h.first).at > h.maxAge) {
		h.drop()
	}
	for h.lagged < h.end() && (h.lagBytes > h.maxBytes/4*3 || at-h.entry(h.lagged).at > h.maxAge/4*3) {
		h.late()
	}
}

// late counts the oldest revision above lag among those that a reader is about to lose.
func (h *history) late() {
	h.lag = h.entry(h.lagged).Record.Modified
	for h.lagged < h.end() && h.entry(h.lagged).Record.Modified == h.lag {
		h.lagBytes -= h.entry(h.lagged).cost()
		h.lagged++
	}
}

// drop drops the oldest revision.
func (h *history) drop() {
	if h.lagged == h.first {
		h.late()
	}
	h.base = h.entry(h.first).Record.Modified
	for h.entries.len() > 0 && h.entry(h.first).Record.Modified == h.base {
		e := h.entries.pop()
		h.first++
		h.bytes -= e.cost()
		f := h.buckets[e.Record.Key.Bucket]
		f.dropped = f.marks.pop().revision
		name := e.Record.Key.Name
		for t := range f.topics.following(name) {
			t.dropped = h.base
		}
		for t := range h.all.following(name) {
			t.dropped = h.base
		}
	}
	h.forget()
}

// forget drops the views below base.
func (h *history) forget() {
	for len(h.roots) > 0 && h.roots[0].revision < h.base {
		h.roots[0] = nil
		h.roots = h.roots[1:]
	}
	h.recent = slices.DeleteFunc(h.recent, func(v *view) bool { return v.revision < h.base })
}

// compact drops everything at and below a revision that has been reached.
func (h *history) compact(below Revision) {
	for h.entries.len() > 0 && h.entry(h.first).Record.Modified <= below {
		h.drop()
	}
	h.floor = max(h.floor, below)
	if below > h.base { // in a gap
		h.base, h.lag = below, max(h.lag, below)
		h.forget()
	}
}

// reset drops everything and begins anew at a revision, as if each of the buckets, and
// each that has had events, had been changed by it.
func (h *history) reset(rev Revision, buckets iter.Seq[string]) {
	h.first = h.end()
	h.entries, h.bytes = ring[entry]{}, 0
	h.lagged, h.lagBytes = h.first, 0
	h.base, h.lag, h.floor = rev, rev, rev
	h.roots, h.recent, h.unrooted = nil, nil, 0
	for bucket := range buckets {
		h.bucket(bucket)
	}
	for _, f := range h.buckets {
		f.marks, f.dropped = ring[mark]{}, rev
		f.topics.lose(rev)
	}
	h.all.lose(rev)
}

func (h *history) bucket(bucket string) *bucketHistory {
	f := h.buckets[bucket]
	if f == nil {
		if h.buckets == nil {
			h.buckets = map[string]*bucketHistory{}
		}
		f = &bucketHistory{}
		h.buckets[bucket] = f
	}
	return f
}

// reach returns the oldest revision after which all events of the range are kept.
func (h *history) reach(f *bucketHistory) Revision {
	if f == nil {
		return h.base
	}
	return max(h.floor, f.dropped)
}

// next calls yield with the kept events of a bucket (of all, for a nil one)
// above a revision, in order, until it returns false.
func (h *history) next(f *bucketHistory, above Revision, yield func(*entry) bool) {
	if f == nil {
		for at := h.above(above); at < h.end(); at++ {
			if !yield(h.entry(at)) {
				return
			}
		}
		return
	}
	for i := f.above(above); i < f.marks.len(); i++ {
		if !yield(h.entry(f.marks.at(i).position)) {
			return
		}
	}
}

// count returns how many events next yields, at most most.
func (h *history) count(f *bucketHistory, above Revision, most int) int {
	if f == nil {
		return min(h.end()-h.above(above), most)
	}
	n := f.marks.len()
	for i := range min(n, most) {
		if f.marks.at(n-1-i).revision <= above {
			return i
		}
	}
	return min(n, most)
}

// event returns the kept event of a key at a revision, or nil.
func (h *history) event(key Key, rev Revision) *Event {
	f := h.buckets[key.Bucket]
	if f == nil {
		return nil
	}
	for i := f.above(rev - 1); i < f.marks.len() && f.marks.at(i).revision == rev; i++ {
		if e := h.entry(f.marks.at(i).position); e.Record.Key == key {
			return &e.Event
		}
	}
	return nil
}

// wantsRoot reports whether a root is due.
func (h *history) wantsRoot(r *records) bool {
	return h.unrooted >= rootSpacing && h.unrooted >= r.size/4
}

func (h *history) addRoot(v *view) {
	h.roots = append(h.roots, v)
	h.unrooted = 0
}

// rootAbove returns the nearest kept view at or above a revision, at most newest, and
// the events to undo from it.
func (h *history) rootAbove(at Revision, newest *view) (*view, []Event) {
	root := newest
	for _, views := range [][]*view{h.roots, h.recent} {
		for _, v := range views {
			if v.revision >= at && v.revision < root.revision {
				root = v
			}
		}
	}
	from, to := h.above(at), h.above(root.revision)
	undo := make([]Event, 0, to-from)
	for ; from < to; from++ {
		undo = append(undo, h.entry(from).Event)
	}
	return root, undo
}

// remember caches a view that was computed.
func (h *history) remember(v *view) {
	if v.revision < h.base {
		return
	}
	if len(h.recent) == recentViews {
		h.recent = slices.Delete(h.recent, 0, 1)
	}
	h.recent = append(h.recent, v)
}

// wakeAll wakes every waiting cursor.
func (h *history) wakeAll() {
	h.all.wakeAll()
	for _, f := range h.buckets {
		f.topics.wakeAll()
	}
}

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
