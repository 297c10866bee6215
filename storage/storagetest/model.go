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
	"strconv"
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

// Model runs random operations against a store and a naive model: a list of all events
// and a map per revision. Reads at old revisions and cursors from any revision must
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
				T: t, o: o, store: open(t), rng: rand.New(rand.NewPCG(seed, 0)),
				states: []map[storage.Key]seen{{}},
			}
			defer func() { m.store.Close() }()
			for m.step = range o.Steps {
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
	*testing.T
	o     ModelOptions
	store storage.Store
	rng   *rand.Rand
	step  int

	events []happened             // by revision, from 1
	states []map[storage.Key]seen // by revision, from 0
	// reach is the oldest revision that the store must still serve, compacted the
	// oldest that it may serve.
	reach, compacted storage.Revision
	cursors          []*follower
}

// follower is a cursor and its expected state.
type follower struct {
	storage.Cursor
	r    storage.Range
	seen storage.Revision
}

func (m *model) failf(format string, args ...any) {
	m.Helper()
	m.Fatalf("step %d, revision %d: %s", m.step, m.newest(), fmt.Sprintf(format, args...))
}

func (m *model) newest() storage.Revision { return storage.Revision(len(m.events)) }

func (m *model) play() {
	switch n := m.rng.IntN(100); {
	case n < 55:
		m.write()
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

// revision returns a random assigned revision, mostly a recent one.
func (m *model) revision() storage.Revision {
	back := m.rng.IntN(30)
	if m.rng.IntN(4) == 0 {
		back = m.rng.IntN(len(m.states))
	}
	return max(0, m.newest()-storage.Revision(back))
}

func (m *model) write() {
	w := storage.Write{Key: m.key(), Expect: storage.AnyRevision}
	current, exists := m.states[m.newest()][w.Key]
	if m.rng.IntN(4) > 0 {
		w.Value = []byte(`{"rv":"","pad":"` + strings.Repeat("x", m.rng.IntN(40)) + `"}`)
		w.Stamp = 7
	}
	switch m.rng.IntN(4) {
	case 0:
		w.Expect = m.revision()
	case 1:
		w.Expect = current.Modified // Absent if it does not exist
	}
	if w.Value == nil && w.Expect == storage.Absent {
		w.Expect = storage.AnyRevision
	}
	holds := w.Expect == storage.AnyRevision && (w.Value != nil || exists) || w.Expect != storage.AnyRevision && w.Expect == current.Modified
	rec, err := m.store.Commit(context.Background(), w)
	if !holds {
		if !errors.Is(err, storage.ErrConflict) {
			m.failf("write %s expecting %d: got error %v, want a conflict with %v", w.Key, w.Expect, err, current)
		}
		return
	}
	if err != nil {
		m.failf("write %s expecting %d: %v", w.Key, w.Expect, err)
	}
	e, next := m.expect(w, current, exists)
	if diff := cmp.Diff(e.Record, see(rec)); diff != "" {
		m.failf("write %s (-want +got)\n%s", w.Key, diff)
	}
	m.events = append(m.events, e)
	m.states = append(m.states, next)
	if m.o.Forgets {
		m.reach = m.newest()
	}
}

// expect computes the outcome of a write.
func (m *model) expect(w storage.Write, current seen, exists bool) (happened, map[storage.Key]seen) {
	rev := m.newest() + 1
	next := maps.Clone(m.states[m.newest()])
	e := happened{Record: &seen{w.Key.Bucket, w.Key.Name, "", rev, rev}}
	if exists {
		e.Previous, e.Record.Created = &current, current.Created
	}
	if w.Value == nil {
		e.Deleted = true
		e.Record.Value = strings.Replace(current.Value, strconv.Itoa(int(current.Modified)), strconv.Itoa(int(rev)), 1)
		delete(next, w.Key)
	} else {
		e.Record.Value = strings.Replace(string(w.Value), `""`, fmt.Sprintf("%q", strconv.Itoa(int(rev))), 1)
		next[w.Key] = *e.Record
	}
	return e, next
}

func (m *model) view() {
	at := m.revision()
	v, err := m.store.View(context.Background(), at)
	if at == 0 {
		at = m.newest()
	}
	if !m.allowed("view", at, err) {
		return
	}
	m.compare(v, at)
}

// allowed reports whether a read at a revision succeeded, and fails the test if it must
// have succeeded or failed.
func (m *model) allowed(what string, at storage.Revision, err error) bool {
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
func (m *model) compare(v storage.View, at storage.Revision) {
	m.Helper()
	if v.Revision() != at {
		m.failf("view has revision %d, want %d", v.Revision(), at)
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
	if diff := cmp.Diff(want, contents(v, bucket, prefix, start)); diff != "" {
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
	if diff := cmp.Diff(rec, see(v.Get(k))); diff != "" {
		m.failf("get %s at %d (-want +got)\n%s", k, at, diff)
	}
}

func (m *model) follow() {
	f := &follower{seen: m.revision()}
	if m.rng.IntN(4) > 0 {
		f.r.Bucket = m.key().Bucket
	}
	f.r.Prefix = []string{"", "ns1/", "ns", "ns2/3"}[m.rng.IntN(4)]
	c, err := m.store.Watch(f.r, f.seen)
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
	if b.Revision < f.seen || b.Revision > m.newest() {
		m.failf("batch up to %d after %d", b.Revision, f.seen)
	}
	var want []happened
	for _, e := range m.events[f.seen:b.Revision] {
		if (f.r.Bucket == "" || f.r.Bucket == e.Record.Bucket) && strings.HasPrefix(e.Record.Name, f.r.Prefix) {
			want = append(want, e)
		}
	}
	if diff := cmp.Diff(want, happen(b.Events)); diff != "" {
		m.failf("events of %v in (%d, %d] (-want +got)\n%s", f.r, f.seen, b.Revision, diff)
	}
	f.seen = b.Revision
}

func (m *model) compact() {
	below := m.revision()
	if err := m.store.Compact(context.Background(), below); err != nil {
		m.failf("compact to %d: %v", below, err)
	}
	m.compacted = max(m.compacted, below)
	m.reach = max(m.reach, below)
}

func (m *model) reopen() {
	if m.o.Reopen == nil {
		return
	}
	m.store = m.o.Reopen(m.T, m.store)
	m.cursors = nil
	// Dropped history may be readable again, and the other way round.
	m.compacted, m.reach = 0, m.newest()
	m.compare(m.open(0), m.newest())
}

func (m *model) open(at storage.Revision) storage.View {
	m.Helper()
	v, err := m.store.View(context.Background(), at)
	if err != nil {
		m.failf("view: %v", err)
	}
	return v
}

// fork checks that a fork begins equal and that neither sees the other.
func (m *model) fork() {
	forker, ok := m.store.(storage.Forker)
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
	if err != nil || v.Revision() != m.newest()+1 || string(v.Get(k).Value) != "fork" {
		m.failf("view of a fork: %v, %v", v, err)
	}
	m.compare(m.open(0), m.newest())
}
