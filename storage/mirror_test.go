// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/steer-dev/steer/storage"
)

// made is a change of a key in bucket b.
func made(rev storage.Revision, name, value string) storage.Change {
	c := storage.Change{Revision: rev, Time: time.Now(), Key: storage.Key{Bucket: "b", Name: name}}
	if value != "" {
		c.Value = []byte(value)
	}
	return c
}

func TestMirrorRefusesChangesThatDoNotFollow(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string][]storage.Change{
		"an old revision":              {made(5, "x", "1")},
		"a revision that decreases":    {made(9, "x", "1"), made(8, "y", "1")},
		"a deletion of nothing":        {made(6, "none", "")},
		"a key twice at one revision":  {made(6, "x", "1"), made(6, "x", "2")},
		"a value without its revision": {{Revision: 6, Key: storage.Key{Bucket: "b", Name: "x"}, Value: []byte("rv="), Stamp: 3}},
		"no key":                       {made(6, "", "1")},
	} {
		m := storage.NewMirror(storage.MemoryOptions{})
		if err := m.Apply(made(5, "a", "1")); err != nil {
			t.Fatal(err)
		}
		if err := m.Apply(changes...); !errors.Is(err, storage.ErrInvalid) {
			t.Errorf("%s: got error %v, want ErrInvalid", name, err)
		}
		if n := m.Latest().Count("b", "", ""); n > 2 {
			t.Errorf("%s: half of a revision was applied: %d records", name, n)
		}
	}
}

func TestMirrorWaitsForARevision(t *testing.T) {
	t.Parallel()
	m := storage.NewMirror(storage.MemoryOptions{})
	var waits [6]chan error
	for rev := range waits {
		ended := make(chan error, 1)
		waits[rev] = ended
		go func() { ended <- m.Wait(context.Background(), storage.Revision(rev)) }()
	}
	want := func(rev int, target error) {
		t.Helper()
		if err := <-waits[rev]; !errors.Is(err, target) {
			t.Fatalf("waiting for %d: got %v, want %v", rev, err, target)
		}
	}
	want(0, nil)
	if err := m.Apply(made(3, "a", "1")); err != nil {
		t.Fatal(err)
	}
	for rev := 1; rev <= 3; rev++ {
		want(rev, nil)
	}
	m.Advance(4)
	m.Advance(2)
	want(4, nil)
	if at := m.Latest().Revision(); at != 4 {
		t.Fatalf("the mirror is at %d", at)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Wait(ctx, 5); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	m.Close()
	want(5, storage.ErrClosed)
	if err := m.Apply(made(9, "a", "2")); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestMirrorFindsWhatARevisionWrote(t *testing.T) {
	t.Parallel()
	m := storage.NewMirror(storage.MemoryOptions{})
	if err := m.Apply(made(3, "a", "1"), made(3, "b", "1"), made(7, "a", "2"), made(9, "a", ""), made(12, "b", "2")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		rev   storage.Revision
		value string
		err   error
	}{
		{"a", 3, "1", nil}, {"b", 3, "1", nil}, {"a", 7, "2", nil}, {"a", 9, "2", nil}, {"b", 12, "2", nil},
		{"b", 7, "", storage.ErrCompacted}, {"a", 4, "", storage.ErrCompacted}, {"b", 13, "", storage.ErrFuture},
	} {
		rec, err := m.Written(storage.Key{Bucket: "b", Name: tt.name}, tt.rev)
		switch {
		case !errors.Is(err, tt.err):
			t.Errorf("%s at %d: got error %v, want %v", tt.name, tt.rev, err, tt.err)
		case err == nil && (rec.Modified != tt.rev || string(rec.Value) != tt.value):
			t.Errorf("%s at %d: got %q at %d", tt.name, tt.rev, rec.Value, rec.Modified)
		}
	}
}

func TestMirrorThatIsResetEndsEveryCursor(t *testing.T) {
	t.Parallel()
	m := storage.NewMirror(storage.MemoryOptions{})
	if err := m.Apply(made(3, "a", "1"), made(4, "n/b", "1")); err != nil {
		t.Fatal(err)
	}
	ranges := []storage.Range{
		{}, {Bucket: "b"}, {Bucket: "b", Prefix: "n/"}, {Bucket: "none"}, {Bucket: "gone"}, {Bucket: "new"},
		{Bucket: "b", WakeOn: func(storage.Event) bool { return false }},
	}
	var ended [2][]chan error
	for i := range ended {
		for _, r := range ranges {
			c, err := m.Watch(r, 4)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			end := make(chan error, 1)
			ended[i] = append(ended[i], end)
			if i == 0 { // waits, or is about to
				go func() {
					_, err := c.Next(context.Background())
					end <- err
				}()
				continue
			}
			defer func() {
				_, err := c.Poll()
				if !errors.Is(err, storage.ErrCompacted) {
					t.Errorf("a cursor of %v got %v", r, err)
				}
			}()
		}
	}
	kept := m.Get(storage.Key{Bucket: "b", Name: "a"})
	other := storage.NewMemory(storage.MemoryOptions{From: m.Latest()})
	for _, w := range []storage.Write{
		{Key: storage.Key{Bucket: "b", Name: "n/b"}, Expect: storage.AnyRevision},
		{Key: storage.Key{Bucket: "new", Name: "c"}, Value: []byte("1")},
	} {
		if _, err := other.Commit(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	waited := make(chan error, 1)
	go func() { waited <- m.Wait(context.Background(), 6) }()
	if err := m.Reset(other.Latest()); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	for i, end := range ended[0] {
		if err := <-end; !errors.Is(err, storage.ErrLagged) || !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("a waiting cursor of %v got %v", ranges[i], err)
		}
	}
	if m.Get(kept.Key) != kept || m.Get(storage.Key{Bucket: "b", Name: "n/b"}) != nil || m.Get(storage.Key{Bucket: "new", Name: "c"}) == nil {
		t.Error("the state is not that of the view")
	}
	if at := m.LastModified("new"); at != 6 {
		t.Errorf("the new bucket was changed at %d", at)
	}
	for _, r := range ranges {
		if _, err := m.Watch(r, 5); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("watch %v from before: %v", r, err)
		}
	}
	if _, err := m.View(5); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("view from before: %v", err)
	}
	c, err := m.Watch(storage.Range{Bucket: "b"}, 6)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := m.Apply(made(7, "a", "2")); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Poll(); err != nil || len(b.Events) != 1 || b.Events[0].Previous != kept {
		t.Errorf("after it: %v, %v", b, err)
	}
	if err := m.Reset(other.Latest()); !errors.Is(err, storage.ErrInvalid) {
		t.Errorf("to an older state: %v", err)
	}
}

func TestMirrorKeepsRevisionsWhole(t *testing.T) {
	t.Parallel()
	m := storage.NewMirror(storage.MemoryOptions{HistoryBytes: 64 << 10})
	const each = 7
	for rev := storage.Revision(10); rev < 10000; rev += 10 {
		var changes []storage.Change
		for i := range each {
			changes = append(changes, made(rev, fmt.Sprint(i), fmt.Sprint(rev)))
		}
		if err := m.Apply(changes...); err != nil {
			t.Fatal(err)
		}
	}
	oldest := storage.Revision(0)
	for rev := storage.Revision(1); rev < 9990; rev++ {
		v, err := m.View(rev)
		if err != nil {
			if !errors.Is(err, storage.ErrCompacted) || oldest > 0 {
				t.Fatal(err)
			}
			continue
		}
		if oldest == 0 {
			oldest = rev
		}
		for rec := range v.Ascend("b", "", "") {
			if rec.Modified != rev/10*10 {
				t.Fatalf("the view at %d has a record of %d", rev, rec.Modified)
			}
		}
		c, err := m.Watch(storage.Range{Bucket: "b"}, rev)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := c.Poll(); err != nil || len(b.Events)%each != 0 || b.Events[0].Record.Modified != rev/10*10+10 {
			t.Fatalf("after %d: %d events, %v", rev, len(b.Events), err)
		}
		c.Close()
	}
	if oldest < 20 || oldest > 9700 {
		t.Fatalf("the history begins with %d", oldest)
	}
}
