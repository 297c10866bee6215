// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/steer-dev/steer/storage"
)

func watches() []check {
	return []check{
		{"a cursor yields every event of its range after its revision, in order", func(t *tester) {
			t.put("b", "a", "1")
			t.put("c", "a", "1")
			t.put("b", "a", "2")
			t.put("b", "n/a", "1")
			t.delete("b", "a")
			a1, a2, end := &seen{"b", "a", "1", 1, 1}, &seen{"b", "a", "2", 1, 3}, &seen{"b", "a", "2", 1, 5}
			c1, na := &seen{"c", "a", "1", 2, 2}, &seen{"b", "n/a", "1", 4, 4}
			for _, tt := range []struct {
				r     storage.Range
				after int
				want  []happened
			}{
				{storage.Range{Bucket: "b"}, 0, []happened{{a1, nil, false}, {a2, a1, false}, {na, nil, false}, {end, a2, true}}},
				{storage.Range{Bucket: "b"}, 3, []happened{{na, nil, false}, {end, a2, true}}},
				{storage.Range{Bucket: "b", Prefix: "n/"}, 0, []happened{{na, nil, false}}},
				{storage.Range{Bucket: "b", Prefix: "n/a"}, 0, []happened{{na, nil, false}}},
				{storage.Range{Bucket: "b", Prefix: "n/b"}, 0, nil},
				{storage.Range{Bucket: "c"}, 1, []happened{{c1, nil, false}}},
				{storage.Range{Bucket: "none"}, 0, nil},
				{storage.Range{}, 1, []happened{{c1, nil, false}, {a2, a1, false}, {na, nil, false}, {end, a2, true}}},
				{storage.Range{Prefix: "n/"}, 0, []happened{{na, nil, false}}},
				{storage.Range{Bucket: "b"}, 5, nil},
			} {
				events, at := t.drain(t.watch(tt.r, t.at(tt.after)))
				t.equal(tt.want, t.happen(events))
				t.equal(5, t.step(at))
			}
		}},
		{"a cursor sees the record that the write returned", func(t *tester) {
			c := t.watch(storage.Range{Bucket: "b"}, t.at(0))
			rec := t.put("b", "a", "1")
			b, err := c.Next(context.Background())
			if err != nil || len(b.Events) != 1 || b.Events[0].Record != rec {
				t.Fatalf("got %v, %v", b, err)
			}
		}},
		{"the revision of a batch advances without events and never overtakes one", func(t *tester) {
			c := t.watch(storage.Range{Bucket: "b"}, t.at(0))
			t.put("other", "a", "1")
			b, err := c.Poll()
			if err != nil || len(b.Events) > 0 || b.Revision < t.at(1) { // others may write as well
				t.Fatalf("got %v, %v", b, err)
			}
			done := make(chan error, 1)
			go func() { done <- t.churn(2000) }()
			var last storage.Revision
			for count := 0; count < 1000; {
				b, err := c.Next(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range b.Events {
					if e.Record.Modified <= last || e.Record.Modified > b.Revision {
						t.Fatalf("event at %d in a batch up to %d, after %d was complete", e.Record.Modified, b.Revision, last)
					}
					last = e.Record.Modified
					count++
				}
				last = b.Revision
				if b, err = c.Poll(); err != nil {
					t.Fatal(err)
				}
				for _, e := range b.Events {
					if e.Record.Modified <= last {
						t.Fatalf("event at %d came after %d was complete", e.Record.Modified, last)
					}
					count++
				}
				last = b.Revision
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}},
	}
}

func waiting() []check { //nolint:funlen // a table of checks
	return []check{
		{"Next waits for an event of its range", func(t *tester) {
			for _, r := range []storage.Range{{Bucket: "b"}, {Bucket: "b", Prefix: "n/"}, {Bucket: "b", Prefix: "n/a"}, {}} {
				c := t.watch(r, t.view(0).Revision())
				got := make(chan storage.Batch, 1)
				go func() {
					b, _ := c.Next(context.Background())
					got <- b
				}()
				t.put("b", "n/a", "x")
				if b := <-got; len(b.Events) != 1 || b.Events[0].Record.Key != key("b", "n/a") {
					t.Fatalf("%v: got %v", r, t.happen(b.Events))
				}
			}
		}},
		{"Next returns when its context ends", func(t *tester) {
			c := t.watch(storage.Range{Bucket: "b"}, t.at(0))
			ctx, cancel := context.WithCancel(context.Background())
			got := make(chan error, 1)
			go func() {
				_, err := c.Next(ctx)
				got <- err
			}()
			cancel()
			t.wantErr(<-got, context.Canceled)
			t.put("b", "a", "1")
			if b, err := c.Next(context.Background()); err != nil || len(b.Events) != 1 {
				t.Fatalf("the cursor lost its place: %v, %v", b, err)
			}
		}},
		{"Next passes over what WakeOn leaves out while it waits, and nothing else", func(t *tester) {
			var asked []storage.Revision
			c := t.watch(storage.Range{Bucket: "b", WakeOn: func(e storage.Event) bool {
				asked = append(asked, e.Record.Modified)
				return e.Deleted
			}}, t.at(0))
			t.put("b", "a", "1")
			if b, err := c.Next(context.Background()); err != nil || len(b.Events) != 1 {
				t.Fatalf("what was there: %v, %v", t.happen(b.Events), err)
			}
			for _, roused := range []bool{true, false} {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				waits := make(chan struct{})
				var b storage.Batch
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					b, err = c.Next(&told{Context: ctx, waits: sync.OnceFunc(func() { close(waits) })})
				}()
				<-waits
				t.put("b", "a", "2")
				t.put("c", "a", "1")
				rec := t.put("b", "x", "1")
				if roused {
					rec = t.delete("b", "x")
					if <-done; err != nil || len(b.Events) != 1 || b.Events[0].Record != rec {
						t.Fatalf("roused: got %v, %v", t.happen(b.Events), err)
					}
				} else {
					cancel()
					<-done
					t.wantErr(err, context.Canceled)
				}
				if b, err := c.Poll(); err != nil || len(b.Events) > 0 || b.Revision != rec.Modified {
					t.Fatalf("got %v up to %d, %v", t.happen(b.Events), b.Revision, err)
				}
			}
			rec := t.put("b", "a", "3")
			if b, err := c.Poll(); err != nil || len(b.Events) != 1 || b.Events[0].Record != rec {
				t.Fatalf("awake: %v, %v", t.happen(b.Events), err)
			}
			for i, step := range []int{2, 4, 5, 6, 8} {
				if i >= len(asked) || asked[i] != t.at(step) {
					t.Fatalf("WakeOn was called for %d, want steps 2, 4, 5, 6 and 8", asked)
				}
			}
		}},
		{"closing a cursor wakes its reader and is idempotent", func(t *tester) {
			c := t.watch(storage.Range{Bucket: "b"}, t.at(0))
			got := make(chan error, 1)
			go func() {
				_, err := c.Next(context.Background())
				got <- err
			}()
			c.Close()
			c.Close()
			t.wantErr(<-got, storage.ErrClosed)
			_, err := c.Poll()
			t.wantErr(err, storage.ErrClosed)
		}},
		{"a watch cannot start after a revision that was never assigned", func(t *tester) {
			t.put("b", "a", "1")
			_, err := t.Watch(storage.Range{Bucket: "b"}, t.at(1)+1<<40)
			t.wantErr(err, storage.ErrFuture)
		}},
	}
}

func transactions() []check {
	return []check{
		{"what is written at one revision is read at once and never split into batches", func(t *tester) {
			s, ok := t.Store.(Transactor)
			if !ok {
				t.Skip("every write of the store has a revision of its own")
			}
			const each, times = 60, 40
			var writes []storage.Write
			for i := range each {
				writes = append(writes, storage.Write{Key: key([]string{"b", "c"}[i%2], fmt.Sprint(i)), Value: []byte("rv="), Stamp: 3})
			}
			c, all := t.watch(storage.Range{Bucket: "b"}, t.at(0)), t.watch(storage.Range{}, t.at(0))
			for range times {
				rev, err := s.Transact(context.Background(), writes...)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range writes {
					if rec := t.Get(w.Key); rec.Modified != rev || string(rec.Value) != fmt.Sprint("rv=", rev) {
						t.Fatalf("got %v after the writes at revision %d", rec, rev)
					}
				}
				t.steps = append(t.steps, rev)
			}
			for c, of := range map[storage.Cursor]int{c: each / 2, all: each} {
				counts := map[storage.Revision]int{}
				for seen, last := 0, storage.Revision(0); seen < of*times; {
					b, err := c.Poll()
					if err != nil || len(b.Events) == 0 {
						t.Fatalf("after %d events: %d more, %v", seen, len(b.Events), err)
					}
					for _, e := range b.Events {
						if e.Record.Modified <= last {
							t.Fatalf("revision %d is split", e.Record.Modified)
						}
						counts[e.Record.Modified]++
					}
					seen, last = seen+len(b.Events), b.Revision
				}
				for step := 1; step <= times; step++ {
					t.equal(of, counts[t.at(step)])
				}
			}
		}},
	}
}

func endings() []check {
	return []check{
		{"a cursor whose events were compacted away has lagged", func(t *tester) {
			lost, quiet := t.watch(storage.Range{Bucket: "b"}, t.at(0)), t.watch(storage.Range{Bucket: "c"}, t.at(0))
			t.put("b", "a", "1")
			t.put("b", "a", "2")
			t.compact(2)
			_, err := lost.Poll()
			t.wantErr(err, storage.ErrLagged)
			t.wantErr(err, storage.ErrCompacted)
			if b, err := quiet.Poll(); err != nil || b.Revision != t.at(2) {
				t.Fatalf("a cursor that lost nothing: %v, %v", b, err)
			}
		}},
		{"many cursors each see everything exactly once", func(t *tester) {
			const writes = 500
			var wg sync.WaitGroup
			errs := make(chan error, 32)
			for i := range 32 {
				r := storage.Range{Bucket: "b"}
				if i%4 == 3 {
					r = storage.Range{}
				}
				c := t.watch(r, t.at(0))
				wg.Go(func() {
					for want := 0; want < writes; {
						b, err := c.Next(context.Background())
						if err != nil {
							errs <- err
							return
						}
						for _, e := range b.Events {
							if got := string(e.Record.Value); got != fmt.Sprint(want) {
								errs <- fmt.Errorf("got write %s, want %d", got, want)
								return
							}
							want++
						}
					}
				})
			}
			for i := range writes {
				t.put("b", fmt.Sprint(i%10), fmt.Sprint(i))
			}
			wg.Wait()
			close(errs)
			for err := range errs {
				t.Error(err)
			}
		}},
	}
}

// churn makes n writes to two buckets, from two goroutines.
func (t *tester) churn(n int) error {
	errs := make(chan error, 2)
	for _, bucket := range []string{"b", "other"} {
		go func() {
			for i := range n / 2 {
				_, err := t.Commit(context.Background(), storage.Write{Key: key(bucket, fmt.Sprint(i%20)), Value: []byte("v"), Expect: storage.AnyRevision})
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	return errors.Join(<-errs, <-errs)
}

func keeping() []check {
	return []check{
		{"compaction forgets the history below a revision", func(t *tester) {
			for i := range 5 {
				t.put("b", "a", fmt.Sprint(i))
			}
			t.compact(3)
			_, err := t.View(context.Background(), t.at(2))
			t.wantErr(err, storage.ErrCompacted)
			for _, r := range []storage.Range{{Bucket: "b"}, {Bucket: "untouched"}, {}} {
				_, err = t.Watch(r, t.at(2))
				t.wantErr(err, storage.ErrCompacted)
				t.watch(r, t.at(3))
			}
			t.equal("2", string(t.view(t.at(3)).Get(key("b", "a")).Value))
			events, _ := t.drain(t.watch(storage.Range{Bucket: "b"}, t.at(3)))
			t.equal(2, len(events))
			t.equal("2", string(events[0].Previous.Value))
		}},
		{"compacting what is gone is no error, the future is one", func(t *tester) {
			t.put("b", "a", "1")
			t.put("b", "a", "2")
			for _, below := range []int{2, 1, 2} {
				t.compact(below)
			}
			t.wantErr(t.Compact(context.Background(), t.at(2)+1<<40), storage.ErrFuture)
			t.equal("2", string(t.view(0).Get(key("b", "a")).Value))
		}},
		{"a view opened before compaction stays whole", func(t *tester) {
			t.put("b", "a", "1")
			v := t.view(0)
			t.put("b", "a", "2")
			t.compact(2)
			t.equal("1", string(v.Get(key("b", "a")).Value))
		}},
		{"a healthy store reports no error", func(t *tester) {
			if err := t.Health(); err != nil {
				t.Fatal(err)
			}
		}},
		{"a closed store refuses everything and closing is idempotent", func(t *tester) {
			t.put("b", "a", "1")
			v := t.view(0)
			waiting := t.watch(storage.Range{Bucket: "b"}, t.at(1))
			got := make(chan error, 1)
			go func() {
				_, err := waiting.Next(context.Background())
				got <- err
			}()
			for range 2 {
				if err := t.Close(); err != nil {
					t.Fatal(err)
				}
			}
			t.wantErr(<-got, storage.ErrClosed)
			_, err := t.Commit(context.Background(), storage.Write{Key: key("b", "a"), Value: []byte("2"), Expect: storage.AnyRevision})
			t.wantErr(err, storage.ErrClosed)
			_, err = t.View(context.Background(), 0)
			t.wantErr(err, storage.ErrClosed)
			_, err = t.Watch(storage.Range{}, t.at(1))
			t.wantErr(err, storage.ErrClosed)
			t.wantErr(t.Compact(context.Background(), t.at(1)), storage.ErrClosed)
			t.wantErr(t.Health(), storage.ErrClosed)
			t.equal("1", string(v.Get(key("b", "a")).Value))
		}},
	}
}

func forks() []check {
	return []check{
		{"a fork has the same contents and revision and goes its own way", func(t *tester) {
			t.fork(func(f *tester) {
				t.equal(t.contents(t.view(0), "b", "", ""), t.contents(f.view(0), "b", "", ""))
				t.equal(t.view(0).Revision(), f.view(0).Revision())
				f.put("b", "1", "fork")
				f.delete("b", "2")
				f.put("new", "x", "fork")
				t.put("b", "3", "origin")
				t.equal("v", string(t.view(0).Get(key("b", "1")).Value))
				t.equal("v", string(t.view(0).Get(key("b", "2")).Value))
				t.equal("v", string(f.view(0).Get(key("b", "3")).Value))
				t.equal([]string{"b"}, buckets(t.view(0)))
				t.equal([]string{"b", "new"}, buckets(f.view(0)))
			})
		}},
		{"watches of a fork start at its revision", func(t *tester) {
			t.fork(func(f *tester) {
				at := f.view(0).Revision()
				_, err := f.Watch(storage.Range{Bucket: "b"}, at-1)
				t.wantErr(err, storage.ErrCompacted)
				c := f.watch(storage.Range{Bucket: "b"}, at)
				t.put("b", "origin", "v")
				f.put("b", "fork", "v")
				events, _ := f.drain(c)
				t.equal(1, len(events))
				t.equal("fork", events[0].Record.Key.Name)
			})
		}},
	}
}

// fork fills the store and forks it, if it supports that.
func (t *tester) fork(prove func(f *tester)) {
	forker, ok := t.Store.(storage.Forker)
	if !ok {
		t.Skip("the store is no Forker, which is a contract of its own")
	}
	for i := range 300 {
		t.put("b", fmt.Sprint(i), "v")
	}
	f := newTester(t.T, forker.Fork())
	t.Cleanup(func() { f.Close() })
	prove(f)
}

// told is a context that signals when Done is called.
type told struct {
	context.Context
	waits func()
}

func (c *told) Done() <-chan struct{} {
	c.waits()
	return c.Context.Done()
}
