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
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/storage"
)

// Open returns a new, empty store with the default history. The suite closes
// it.
type Open func(t *testing.T) storage.Store

// Run runs the conformance suite.
func Run(t *testing.T, open Open) {
	for _, group := range []func() []check{writes, values, views, lists, watches, waiting, endings, keeping, forks} {
		for _, c := range group() {
			t.Run(c.sentence, func(t *testing.T) {
				t.Parallel()
				s := open(t)
				t.Cleanup(func() { s.Close() })
				c.prove(&tester{T: t, Store: s})
			})
		}
	}
}

type check struct {
	sentence string
	prove    func(t *tester)
}

// tester is a store whose errors fail the test.
type tester struct {
	*testing.T
	storage.Store
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
	return rec
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

// seen is a record as the suite compares it.
type seen struct {
	Bucket, Name, Value string
	Created, Modified   storage.Revision
}

func see(r *storage.Record) *seen {
	if r == nil {
		return nil
	}
	return &seen{r.Key.Bucket, r.Key.Name, string(r.Value), r.Created, r.Modified}
}

// happened is an event as the suite compares it.
type happened struct {
	Record, Previous *seen
	Deleted          bool
}

func happen(events []storage.Event) []happened {
	var out []happened
	for _, e := range events {
		out = append(out, happened{see(e.Record), see(e.Previous), e.Deleted})
	}
	return out
}

// contents lists a bucket.
func contents(v storage.View, bucket, prefix, start string) []seen {
	var out []seen
	for r := range v.Ascend(bucket, prefix, start) {
		out = append(out, *see(r))
	}
	return out
}

// names lists the names in a bucket.
func names(v storage.View, bucket, prefix, start string) []string {
	var out []string
	for r := range v.Ascend(bucket, prefix, start) {
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
