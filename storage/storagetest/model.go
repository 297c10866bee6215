// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/storage"
)

// ModelOptions configures [Model].
type ModelOptions struct {
	// Runs is the number of random histories. 0 means 20.
	Runs int
	// Steps is the number of operations of each. 0 means 500.
	Steps int
	// Seed makes a run repeatable: run i uses Seed+i. A failure names its seed.
	Seed uint64
	// Forgets is set if the bounds of the store's history are so tight that it may drop
	// any part of it at any time.
	Forgets bool
	// Reopen closes a store and opens it again on the same data, if the store supports
	// that. The history before it may be gone.
	Reopen func(t *testing.T, s storage.Store) storage.Store
}

// Model runs random operations against a store and a naive model: the events and a map
// of each step. A step is a write, or several at one revision where the store is a
// [Transactor]. Reads at old revisions and cursors from any revision must
// agree with it.
func Model(t *testing.T, open Open, o ModelOptions) {
	if o.Runs == 0 {
		o.Runs = 20
	}
	if o.Steps == 0 {
		o.Steps = 500
	}
	for i := range o.Runs {
		seed := o.Seed + uint64(i)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			m := &model{
				tester: newTester(t, open(t)), o: o, rng: rand.New(rand.NewPCG(seed, 0)),
				states: []map[storage.Key]seen{{}}, events: [][]happened{nil},
			}
			defer func() { m.Store.Close() }()
			for m.turn = range o.Steps {
				m.play()
			}
			for _, c := range slices.Clone(m.cursors) {
				m.poll(c)
			}
		})
	}
}

// model is the naive model, with the store under test.
type model struct {
	*tester
	o    ModelOptions
	rng  *rand.Rand
	turn int

	// By step; step 0 is the empty store.
	events [][]happened
	states []map[storage.Key]seen
	// reach is the oldest step that the store must still serve, compacted the
	// oldest that it may serve.
	reach, compacted int
	cursors          []*follower
}

// follower is a cursor and its expected state.
type follower struct {
	storage.Cursor
	r    storage.Range
	seen int
}

func (m *model) failf(format string, args ...any) {
	m.Helper()
	m.Fatalf("turn %d, step %d: %s", m.turn, m.newest(), fmt.Sprintf(format, args...))
}

func (m *model) newest() int { return len(m.events) - 1 }

func (m *model) play() {
	switch n := m.rng.IntN(100); {
	case n < 50:
		m.write()
	case n < 55:
		m.transact()
	case n < 70:
		m.view()
	case n < 78:
		m.follow()
	case n < 96:
		if len(m.cursors) > 0 {
			m.poll(m.cursors[m.rng.IntN(len(m.cursors))])
		}
	case n < 97:
		m.compact()
	case n < 98:
		m.reopen()
	default:
		m.fork()
	}
}

func (m *model) key() storage.Key {
	return key([]string{"a", "b"}[m.rng.IntN(2)], fmt.Sprintf("ns%d/%d", m.rng.IntN(3), m.rng.IntN(6)))
}

// some returns a random step, mostly a recent one.
func (m *model) some() int {
	back := m.rng.IntN(30)
	if m.rng.IntN(4) == 0 {
		back = m.rng.IntN(len(m.states))
	}
	return max(0, m.newest()-back)
}

// value returns the value of a write, and where its revision goes.
func (m *model) value() (value []byte, stamp int) {
	return []byte(`{"rv":"","pad":"` + strings.Repeat("x", m.rng.IntN(40)) + `"}`), 7
}

func (m *model) write() {
	w := storage.Write{Key: m.key(), Expect: storage.AnyRevision}
	current, exists := m.states[m.newest()][w.Key]
	if m.rng.IntN(4) > 0 {
		w.Value, w.Stamp = m.value()
	}
	found := storage.Absent
	if exists {
		found = m.at(current.Modified)
	}
	switch m.rng.IntN(4) {
	case 0:
		w.Expect = m.at(m.some())
	case 1:
		w.Expect = found
	}
	if w.Value == nil && w.Expect == storage.Absent {
		w.Expect = storage.AnyRevision
	}
	holds := w.Expect == storage.AnyRevision && (w.Value != nil || exists) || w.Expect != storage.AnyRevision && w.Expect == found
	rec, err := m.Commit(context.Background(), w)
	if !holds {
		if !errors.Is(err, storage.ErrConflict) {
			m.failf("write %s expecting %d: got error %v, want a conflict with %v", w.Key, w.Expect, err, current)
		}
		return
	}
	if err != nil {
		m.failf("write %s expecting %d: %v", w.Key, w.Expect, err)
	}
	m.stepped(rec.Modified, w)
	if diff := cmp.Diff(m.events[m.newest()][0].Record, m.see(rec)); diff != "" {
		m.failf("write %s (-want +got)\n%s", w.Key, diff)
	}
}

// transact writes several keys at one revision.
func (m *model) transact() {
	s, ok := m.Store.(Transactor)
	if !ok {
		return
	}
	var writes []storage.Write
	for range 1 + m.rng.IntN(6) {
		w := storage.Write{Key: m.key()}
		if slices.ContainsFunc(writes, func(o storage.Write) bool { return o.Key == w.Key }) {
			continue
		}
		if _, exists := m.states[m.newest()][w.Key]; !exists || m.rng.IntN(3) > 0 {
			w.Value, w.Stamp = m.value()
		}
		writes = append(writes, w)
	}
	rev, err := s.Transact(context.Background(), writes...)
	if err != nil {
		m.failf("%d writes at once: %v", len(writes), err)
	}
	m.stepped(rev, writes...)
}

// stepped adds the step of writes that succeeded.
func (m *model) stepped(rev storage.Revision, writes ...storage.Write) {
	if rev <= m.at(m.newest()) {
		m.failf("got revision %d after %d", rev, m.at(m.newest()))
	}
	m.steps = append(m.steps, rev)
	next := maps.Clone(m.states[m.newest()])
	var events []happened
	for _, w := range writes {
		events = append(events, m.expect(w, next, rev))
	}
	m.events, m.states = append(m.events, events), append(m.states, next)
	if m.o.Forgets {
		m.reach = m.newest()
	}
}

// expect computes the outcome of a write in the next step, which has a revision, and
// changes the state by it.
func (m *model) expect(w storage.Write, next map[storage.Key]seen, rev storage.Revision) happened {
	step := m.newest() + 1
	e := happened{Record: &seen{w.Key.Bucket, w.Key.Name, "", step, step}}
	current, exists := next[w.Key]
	if exists {
		e.Previous, e.Record.Created = &current, current.Created
	}
	if w.Value == nil {
		e.Deleted = true
		e.Record.Value = strings.Replace(current.Value, fmt.Sprintf("%q", fmt.Sprint(m.at(current.Modified))), fmt.Sprintf("%q", fmt.Sprint(rev)), 1)
		delete(next, w.Key)
	} else {
		e.Record.Value = strings.Replace(string(w.Value), `""`, fmt.Sprintf("%q", fmt.Sprint(rev)), 1)
		next[w.Key] = *e.Record
	}
	return e
}

func (m *model) view() {
	step := m.some()
	rev := m.at(step)
	if step < m.newest() {
		rev += storage.Revision(m.rng.Int64N(int64(m.at(step+1) - rev))) // the same in a gap
	}
	if step == m.newest() && m.rng.IntN(2) == 0 {
		rev = 0
	}
	if rev == 0 {
		step = m.newest()
	}
	v, err := m.View(context.Background(), rev)
	if !m.allowed("view", step, err) {
		return
	}
	if rev > 0 && v.Revision() != rev {
		m.failf("view of revision %d has revision %d", rev, v.Revision())
	}
	m.compare(v, step)
}

// allowed reports whether a read at a step succeeded, and fails the test if it must
// have succeeded or failed.
func (m *model) allowed(what string, at int, err error) bool {
	m.Helper()
	switch {
	case err == nil && at < m.compacted:
		m.failf("%s at %d succeeded although compacted to %d", what, at, m.compacted)
	case errors.Is(err, storage.ErrCompacted) && at < m.reach, errors.Is(err, storage.ErrLagged) && m.o.Forgets:
		return false
	case err != nil:
		m.failf("%s at %d: %v", what, at, err)
	}
	return true
}

// compare compares a view with a state, with random prefix and start.
func (m *model) compare(v storage.View, at int) {
	m.Helper()
	if step := m.step(v.Revision()); step != at {
		m.failf("view has revision %d of step %d, want step %d", v.Revision(), step, at)
	}
	bucket := m.key().Bucket
	prefix := []string{"", "ns1/", "ns", "ns2/3"}[m.rng.IntN(4)]
	start := []string{"", "ns1/3", "ns2/"}[m.rng.IntN(3)]
	var want []seen
	for k, rec := range m.states[at] {
		if k.Bucket == bucket && strings.HasPrefix(k.Name, prefix) && k.Name >= start {
			want = append(want, rec)
		}
	}
	slices.SortFunc(want, func(a, b seen) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(want, m.contents(v, bucket, prefix, start)); diff != "" {
		m.failf("contents at %d of %s/%s from %q (-want +got)\n%s", at, bucket, prefix, start, diff)
	}
	if n := v.Count(bucket, prefix, start); n != len(want) {
		m.failf("count at %d is %d, want %d", at, n, len(want))
	}
	k := m.key()
	var rec *seen
	if r, ok := m.states[at][k]; ok {
		rec = &r
	}
	if diff := cmp.Diff(rec, m.see(v.Get(k))); diff != "" {
		m.failf("get %s at %d (-want +got)\n%s", k, at, diff)
	}
}

func (m *model) follow() {
	f := &follower{seen: m.some()}
	if m.rng.IntN(4) > 0 {
		f.r.Bucket = m.key().Bucket
	}
	f.r.Prefix = []string{"", "ns1/", "ns", "ns2/3"}[m.rng.IntN(4)]
	c, err := m.Watch(f.r, m.at(f.seen))
	if !m.allowed("watch", f.seen, err) {
		return
	}
	f.Cursor = c
	m.cursors = append(m.cursors, f)
	if len(m.cursors) > 8 {
		m.drop(m.cursors[0])
	}
}

func (m *model) drop(f *follower) {
	f.Close()
	m.cursors = slices.DeleteFunc(m.cursors, func(o *follower) bool { return o == f })
}

// poll reads one batch and compares it with the events of the model.
func (m *model) poll(f *follower) {
	b, err := f.Poll()
	// A cursor may survive a compaction if it had seen all events.
	if (err != nil || f.seen >= m.compacted) && !m.allowed("poll", f.seen, err) {
		m.drop(f)
		return
	}
	end := m.step(b.Revision)
	if end < f.seen {
		m.failf("batch up to step %d after step %d", end, f.seen)
	}
	var want []happened
	for _, e := range slices.Concat(m.events[f.seen+1 : end+1]...) {
		if (f.r.Bucket == "" || f.r.Bucket == e.Record.Bucket) && strings.HasPrefix(e.Record.Name, f.r.Prefix) {
			want = append(want, e)
		}
	}
	if diff := cmp.Diff(want, m.happen(b.Events)); diff != "" {
		m.failf("events of %v in the steps (%d, %d] (-want +got)\n%s", f.r, f.seen, end, diff)
	}
	f.seen = end
}

func (m *model) compact() {
	below := m.some()
	m.tester.compact(below)
	m.compacted = max(m.compacted, below)
	m.reach = max(m.reach, below)
}

func (m *model) reopen() {
	if m.o.Reopen == nil {
		return
	}
	m.Store = m.o.Reopen(m.T, m.Store)
	m.cursors = nil
	// Dropped history may be readable again, and the other way round.
	m.compacted, m.reach = 0, m.newest()
	m.compare(m.tester.view(0), m.newest())
}

// fork checks that a fork begins equal and that neither sees the other.
func (m *model) fork() {
	forker, ok := m.Store.(storage.Forker)
	if !ok {
		return
	}
	f := forker.Fork()
	defer f.Close()
	k := m.key()
	if _, err := f.Commit(context.Background(), storage.Write{Key: k, Value: []byte("fork"), Expect: storage.AnyRevision}); err != nil {
		m.failf("write to a fork: %v", err)
	}
	v, err := f.View(context.Background(), 0)
	if err != nil || v.Revision() <= m.at(m.newest()) || string(v.Get(k).Value) != "fork" {
		m.failf("view of a fork: %v, %v", v, err)
	}
	m.compare(m.tester.view(0), m.newest())
}
