// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storagetest is the conformance suite of package storage. [Run] has one
// subtest per sentence of the contract, [Model] runs random histories against a naive
// model, and [Linearize] checks that concurrent operations on single keys are
// linearizable.
//
//	func TestStore(t *testing.T) {
//		open := func(t *testing.T) storage.Store { ... }
//		storagetest.Run(t, open)
//		storagetest.Model(t, open, 20)
//		storagetest.Linearize(t, open)
//	}
package storagetest

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/storage"
)

// Open returns a new, empty store with the default history. The suite closes
// it.
type Open func(t *testing.T) storage.Store

// Run runs the conformance suite.
func Run(t *testing.T, open Open) {
	for _, group := range []func() []check{writes, values, views, lists, watches, waiting, transactions, endings, keeping, forks} {
		for _, c := range group() {
			t.Run(c.sentence, func(t *testing.T) {
				t.Parallel()
				s := open(t)
				t.Cleanup(func() { s.Close() })
				c.prove(newTester(t, s))
			})
		}
	}
}

type check struct {
	sentence string
	prove    func(t *tester)
}

// Transactor is a store on which several keys can be written at one revision, as
// another process that shares its data may do.
type Transactor interface {
	// Transact makes the writes at once, whatever the state of their keys, and returns
	// when the store shows them.
	Transact(ctx context.Context, writes ...storage.Write) (storage.Revision, error)
}

// tester is a store whose errors fail the test. The checks count revisions by steps,
// which are the writes that the tester made: revisions of a store may have gaps.
type tester struct {
	*testing.T
	storage.Store

	mu    sync.Mutex
	steps []storage.Revision // step 0 is the store as it was opened
}

func newTester(t *testing.T, s storage.Store) *tester {
	return &tester{T: t, Store: s, steps: []storage.Revision{s.Latest().Revision()}}
}

// at returns the revision of a step.
func (t *tester) at(step int) storage.Revision {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.steps[step]
}

// step returns the newest step at or below a revision.
func (t *tester) step(rev storage.Revision) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sort.Search(len(t.steps), func(i int) bool { return t.steps[i] > rev }) - 1
}

func key(bucket, name string) storage.Key { return storage.Key{Bucket: bucket, Name: name} }

// put writes a value in any state of the key.
func (t *tester) put(bucket, name, value string) *storage.Record {
	t.Helper()
	return t.commit(storage.Write{Key: key(bucket, name), Value: []byte(value), Expect: storage.AnyRevision})
}

func (t *tester) delete(bucket, name string) *storage.Record {
	t.Helper()
	return t.commit(storage.Write{Key: key(bucket, name), Expect: storage.AnyRevision})
}

func (t *tester) commit(w storage.Write) *storage.Record {
	t.Helper()
	rec, err := t.Commit(context.Background(), w)
	if err != nil {
		t.Fatalf("commit %s: %v", w.Key, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.steps[len(t.steps)-1]; rec.Modified <= last {
		t.Fatalf("commit %s: got revision %d after %d", w.Key, rec.Modified, last)
	}
	t.steps = append(t.steps, rec.Modified)
	return rec
}

// compact drops the history below a step.
func (t *tester) compact(below int) {
	t.Helper()
	if err := t.Compact(context.Background(), t.at(below)); err != nil {
		t.Fatal(err)
	}
}

func (t *tester) view(at storage.Revision) storage.View {
	t.Helper()
	v, err := t.View(context.Background(), at)
	if err != nil {
		t.Fatalf("view %d: %v", at, err)
	}
	return v
}

func (t *tester) watch(r storage.Range, after storage.Revision) storage.Cursor {
	t.Helper()
	c, err := t.Watch(r, after)
	if err != nil {
		t.Fatalf("watch %v after %d: %v", r, after, err)
	}
	t.Cleanup(c.Close)
	return c
}

// wantErr fails unless err is target.
func (t *tester) wantErr(err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got error %v, want %v", err, target)
	}
}

// seen is a record as the suite compares it, with steps in place of revisions.
type seen struct {
	Bucket, Name, Value string
	Created, Modified   int
}

func (t *tester) see(r *storage.Record) *seen {
	if r == nil {
		return nil
	}
	return &seen{r.Key.Bucket, r.Key.Name, string(r.Value), t.step(r.Created), t.step(r.Modified)}
}

// happened is an event as the suite compares it.
type happened struct {
	Record, Previous *seen
	Deleted          bool
}

func (t *tester) happen(events []storage.Event) []happened {
	var out []happened
	for _, e := range events {
		out = append(out, happened{t.see(e.Record), t.see(e.Previous), e.Deleted})
	}
	return out
}

// contents lists a bucket.
func (t *tester) contents(v storage.View, bucket, prefix, start string) []seen {
	var out []seen
	for r := range v.Ascend(bucket, prefix, start) {
		out = append(out, *t.see(r))
	}
	return out
}

// names lists the names in the bucket b.
func names(v storage.View, prefix, start string) []string {
	var out []string
	for r := range v.Ascend("b", prefix, start) {
		out = append(out, r.Key.Name)
	}
	return out
}

// drain polls until there are no further events.
func (t *tester) drain(c storage.Cursor) ([]storage.Event, storage.Revision) {
	t.Helper()
	var events []storage.Event
	for {
		b, err := c.Poll()
		if err != nil {
			t.Fatalf("poll: %v", err)
		}
		events = append(events, b.Events...)
		if len(b.Events) == 0 {
			return events, b.Revision
		}
	}
}

func (t *tester) equal(want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

func buckets(v storage.View) []string { return slices.Collect(v.Buckets()) }
