// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"slices"
	"sort"
	"time"
)

// Memory of a kept event, without the values that only it keeps alive, in bytes.
const (
	entryCost  = 64
	recordCost = 160
)

// How views at old revisions are found: a root is kept every rootSpacing revisions (or
// a quarter of the number of records, if that is more, so that the roots of a full
// history share most of their nodes), and so are the last recentViews views that were
// computed, for readers that page through one.
const (
	rootSpacing = 4096
	recentViews = 4
)

// history keeps the newest events of a store within an age and a size. It has one entry
// per revision; every bucket has an index of the revisions that changed it. All methods
// need the store's lock; those that change, the exclusive one.
type history struct {
	maxAge   time.Duration
	maxBytes int

	// entries holds the events of the revisions (base, base+len].
	entries ring[entry]
	base    Revision
	bytes   int
	// The entries (lag, newest] fill three quarters of the bounds. A reader whose next
	// event is at or below lag is about to lose it.
	lag      Revision
	lagBytes int

	// floor is the lowest revision at which any reader can start: the one that the
	// store began with or was compacted to.
	floor Revision
	feeds map[string]*feed
	all   topics

	// roots are snapshots at some revisions above base, oldest first, from which
	// older views are computed; recent are views computed that way.
	roots  []*view
	recent []*view
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

// feed is the history of one bucket.
type feed struct {
	// revisions are the kept revisions that changed the bucket.
	revisions ring[Revision]
	// dropped is the newest such revision that is not kept any more.
	dropped Revision
	topics  topics
}

// newest returns the newest revision that changed the bucket, 0 for none.
func (f *feed) newest() Revision {
	if n := f.revisions.len(); n > 0 {
		return *f.revisions.at(n - 1)
	}
	return f.dropped
}

func newHistory(base Revision, maxAge time.Duration, maxBytes int) history {
	return history{maxAge: maxAge, maxBytes: maxBytes, base: base, lag: base, floor: base}
}

func (h *history) newest() Revision { return h.base + Revision(h.entries.len()) }

func (h *history) entry(rev Revision) *entry { return h.entries.at(int(rev - h.base - 1)) }

// append adds the event of the next revision and wakes the cursors that wait for it.
func (h *history) append(e Event, at time.Time) {
	ent := entry{Event: e, at: time.Duration(at.UnixNano())}
	h.entries.push(ent)
	cost := ent.cost()
	h.bytes += cost
	h.lagBytes += cost

	f := h.feed(e.Record.Key.Bucket)
	f.revisions.push(e.Record.Modified)
	for t := range f.topics.following(e.Record.Key.Name) {
		t.publish(e)
	}
	for t := range h.all.following(e.Record.Key.Name) {
		t.publish(e)
	}
	h.trim(at)
}

// trim drops the entries beyond the bounds.
func (h *history) trim(now time.Time) {
	at := time.Duration(now.UnixNano())
	for h.base < h.newest() && (h.bytes > h.maxBytes || at-h.entry(h.base+1).at > h.maxAge) {
		h.drop()
	}
	for h.lag < h.newest() && (h.lagBytes > h.maxBytes/4*3 || at-h.entry(h.lag+1).at > h.maxAge/4*3) {
		h.lag++
		h.lagBytes -= h.entry(h.lag).cost()
	}
}

// drop drops the oldest entry.
func (h *history) drop() {
	e := h.entries.pop()
	cost := e.cost()
	h.base++
	h.bytes -= cost
	if h.lag < h.base {
		h.lag = h.base
		h.lagBytes -= cost
	}
	f := h.feeds[e.Record.Key.Bucket]
	f.dropped = f.revisions.pop()
	name := e.Record.Key.Name
	for t := range f.topics.following(name) {
		t.dropped = h.base
	}
	for t := range h.all.following(name) {
		t.dropped = h.base
	}
	for len(h.roots) > 0 && h.roots[0].revision < h.base {
		h.roots[0] = nil
		h.roots = h.roots[1:]
	}
	h.recent = slices.DeleteFunc(h.recent, func(v *view) bool { return v.revision < h.base })
}

// compact drops all entries at and below an assigned revision.
func (h *history) compact(below Revision) {
	for h.base < below {
		h.drop()
	}
	h.floor = max(h.floor, below)
}

func (h *history) feed(bucket string) *feed {
	f := h.feeds[bucket]
	if f == nil {
		if h.feeds == nil {
			h.feeds = map[string]*feed{}
		}
		f = &feed{}
		h.feeds[bucket] = f
	}
	return f
}

// reach returns the oldest revision after which all events of the range are kept.
func (h *history) reach(f *feed) Revision {
	if f == nil {
		return h.base
	}
	return max(h.floor, f.dropped)
}

// next calls yield with the kept events of a bucket (of all, for a nil feed)
// above a revision, in order, until it returns false.
func (h *history) next(f *feed, above Revision, yield func(*entry) bool) {
	if f == nil {
		for rev := max(above, h.base) + 1; rev <= h.newest(); rev++ {
			if !yield(h.entry(rev)) {
				return
			}
		}
		return
	}
	n := f.revisions.len()
	for i := sort.Search(n, func(i int) bool { return *f.revisions.at(i) > above }); i < n; i++ {
		if !yield(h.entry(*f.revisions.at(i))) {
			return
		}
	}
}

// count returns how many events next yields, at most most.
func (h *history) count(f *feed, above Revision, most int) int {
	if f == nil {
		return min(int(h.newest()-max(above, h.base)), most)
	}
	n := f.revisions.len()
	for i := range min(n, most) {
		if *f.revisions.at(n - 1 - i) <= above {
			return i
		}
	}
	return min(n, most)
}

// wantsRoot reports whether a root is due at a revision.
func (h *history) wantsRoot(rev Revision, r *records) bool {
	last := h.base
	if n := len(h.roots); n > 0 {
		last = h.roots[n-1].revision
	}
	return rev-last >= rootSpacing && rev-last >= Revision(r.size/4)
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
	undo := make([]Event, 0, root.revision-at)
	for rev := at + 1; rev <= root.revision; rev++ {
		undo = append(undo, h.entry(rev).Event)
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
	for _, f := range h.feeds {
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
