// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/etcd"
	"github.com/steer-dev/steer/storage/storagetest"
)

// filled returns a store in memory whose revision is above 1000, with n records.
func filled(t *testing.T, n int) *storage.Memory {
	t.Helper()
	m := storage.NewMemory(storage.MemoryOptions{})
	t.Cleanup(func() { _ = m.Close() })
	for i := range 1000 + n {
		w := storage.Write{Key: storage.Key{Bucket: "example.com/widgets", Name: fmt.Sprintf("default/%05d", max(0, i-999))}, Expect: storage.AnyRevision}
		w.Value, w.Stamp = fmt.Appendf(nil, `{"revision":"","pad":%q}`, strings.Repeat("x", i%3000)), len(`{"revision":"`)
		if _, err := m.Commit(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// contents returns the records of a view without their revisions.
func contents(v storage.View) map[string]string {
	all := map[string]string{}
	for bucket := range v.Buckets() {
		for rec := range v.Ascend(bucket, "", "") {
			all[rec.Key.String()] = string(rec.Unstamped())
		}
	}
	return all
}

// equalContents fails the test unless two views have the same records.
func equalContents(t *testing.T, got, want storage.View) {
	t.Helper()
	a, b := contents(got), contents(want)
	if !maps.Equal(a, b) {
		t.Errorf("got %d records %.200v, want %d", len(a), slices.Sorted(maps.Keys(a)), len(b))
	}
}

func TestRestoredDataHasNewRevisionsAboveTheOldOnes(t *testing.T) {
	t.Parallel()
	o := sharedMember(t).options()
	m := filled(t, 300)
	// The revision is above those that etcd makes in the tests.
	old := storage.NewView(1<<40, func(yield func(*storage.Record) bool) {
		for rec := range m.Latest().Ascend("example.com/widgets", "", "") {
			if !yield(rec) {
				return
			}
		}
	})
	if err := etcd.Restore(t.Context(), o, old, etcd.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	first, second := open(t, o), open(t, o)
	equalContents(t, first.Latest(), old)
	for rec := range first.Latest().Ascend("example.com/widgets", "", "") {
		if rec.Modified <= 1<<40 || rec.Created <= 1<<40 {
			t.Fatalf("%s is at %d, created at %d", rec.Key, rec.Modified, rec.Created)
		}
		if !strings.Contains(string(rec.Value), fmt.Sprintf(`"revision":"%d"`, rec.Modified)) {
			t.Fatalf("%s at %d shows %s", rec.Key, rec.Modified, rec.Value)
		}
	}
	if _, err := first.Watch(storage.Range{}, 1<<40); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("a watch from the old revision: %v", err)
	}
	began := second.Latest().Revision()
	follow, err := second.Watch(storage.Range{}, began)
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Close()
	if _, err := first.Campaign(t.Context(), storage.Member{Identity: "first"}); err != nil {
		t.Fatal(err)
	}
	key := storage.Key{Bucket: "example.com/widgets", Name: "default/00007"}
	before := first.Get(key)
	gone := storage.Key{Bucket: "example.com/widgets", Name: "gone"}
	for _, stale := range []storage.Revision{1 << 40, 1<<40 - 1, 7} {
		for _, k := range []storage.Key{key, gone} {
			var conflict *storage.ConflictError
			if _, err := first.Commit(t.Context(), storage.Write{Key: k, Value: []byte("stale"), Expect: stale}); !errors.As(err, &conflict) {
				t.Errorf("an update of %s at %d: %v", k, stale, err)
			}
		}
	}
	after, err := first.Commit(t.Context(), storage.Write{Key: key, Value: []byte("new"), Expect: before.Modified, While: storage.Condition{Key: key, At: before.Modified}})
	if err != nil || after.Modified <= before.Modified || after.Created != before.Created {
		t.Fatalf("%+v, %v; it was at %d, created at %d", after, err, before.Modified, before.Created)
	}
	batch, err := follow.Next(t.Context())
	if err != nil || len(batch.Events) != 1 || batch.Events[0].Record.Modified != after.Modified || batch.Events[0].Previous.Modified != before.Modified {
		t.Errorf("the other store: %+v, %v", batch, err)
	}
	if v, err := second.View(t.Context(), began); err != nil || v.Get(key).Modified != before.Modified {
		t.Errorf("a view at the old revision: %v", err)
	}

	var saved bytes.Buffer
	at, err := etcd.Save(t.Context(), o, &saved)
	if err != nil || at < after.Modified {
		t.Fatalf("saved at %d: %v", at, err)
	}
	loaded, err := storage.Load(&saved)
	if err != nil {
		t.Fatal(err)
	}
	equalContents(t, loaded, first.Latest())
	if got := loaded.Get(key); got.Modified != after.Modified || loaded.Revision() != at {
		t.Errorf("the snapshot of %d has revision %d, and %s at %d", at, loaded.Revision(), key, got.Modified)
	}
}

func TestRestoreKeepsTheOrderOfRevisions(t *testing.T) {
	t.Parallel()
	o := sharedMember(t).options()
	old := storage.NewView(1000, func(yield func(*storage.Record) bool) {
		for i := range 500 {
			key := storage.Key{Bucket: []string{"b", "c", "apart"}[i%3], Name: fmt.Sprint(i)}
			if !yield(&storage.Record{Key: key, Value: []byte("{}"), Created: 1, Modified: storage.Revision(1000 - i)}) {
				return
			}
		}
	})
	if err := etcd.Restore(t.Context(), o, old, etcd.RestoreOptions{Apart: func(bucket string) bool { return bucket == "apart" }}); err != nil {
		t.Fatal(err)
	}
	now := open(t, o).Latest()
	var before storage.Revision
	apart := false
	for i := 499; i >= 0; i-- {
		key := storage.Key{Bucket: []string{"b", "c", "apart"}[i%3], Name: fmt.Sprint(i)}
		at := now.Get(key).Modified
		if at < before || at == before && (apart || i%3 == 2) {
			t.Fatalf("%s is at %d, and the one before it at %d", key, at, before)
		}
		before, apart = at, i%3 == 2
	}
}

func TestRestoreIsRefusedWhereItWouldLoseData(t *testing.T) {
	t.Parallel()
	o := sharedMember(t).options()
	view := filled(t, 10).Latest()
	s := open(t, o)
	term, err := s.Campaign(t.Context(), storage.Member{Identity: "one"})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.Commit(t.Context(), storage.Write{Key: storage.Key{Bucket: "pods", Name: "default/kept"}, Value: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := etcd.Restore(t.Context(), o, view, etcd.RestoreOptions{}); !errors.Is(err, etcd.ErrHoldsData) {
		t.Errorf("over data: %v", err)
	}
	if err := etcd.Restore(t.Context(), o, view, etcd.RestoreOptions{Replace: true}); !errors.Is(err, etcd.ErrInUse) {
		t.Errorf("while a server leads: %v", err)
	}
	if s.Get(kept.Key) != kept {
		t.Error("a refused restore changed data")
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Restore(t.Context(), o, view, etcd.RestoreOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(t.Context(), 0); !errors.Is(err, etcd.ErrReplaced) {
		t.Errorf("a store that was open: %v", err)
	}
	again := open(t, o)
	equalContents(t, again.Latest(), view)
	if at := again.Latest().Revision(); at <= kept.Modified {
		t.Errorf("the revision is %d, and the data that was replaced had %d", at, kept.Modified)
	}
	foreign := sharedMember(t).options()
	if _, err := s.Client().Put(t.Context(), foreign.Prefix+"/a/b", "c"); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Restore(t.Context(), foreign, view, etcd.RestoreOptions{Replace: true}); !errors.Is(err, etcd.ErrForeign) {
		t.Errorf("over keys of another program: %v", err)
	}
}

func TestRestoreThatWasCutOffIsNoticedAndDoneAgain(t *testing.T) {
	t.Parallel()
	o := sharedMember(t).options()
	view := filled(t, 1000).Latest()
	for cut := 1; cut <= 1000; cut += 250 {
		ctx, cancel := context.WithCancel(t.Context())
		err := etcd.Restore(ctx, o, view, etcd.RestoreOptions{Replace: cut == 1, Progress: func(records int) {
			if records >= cut {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			t.Fatalf("a restore that was ended after %d records succeeded", cut)
		}
		if s, err := etcd.Open(t.Context(), o); !errors.Is(err, etcd.ErrUnfinished) {
			t.Errorf("open after %d records: %v, %v", cut, s, err)
		}
		if _, err := etcd.Save(t.Context(), o, &bytes.Buffer{}); !errors.Is(err, etcd.ErrUnfinished) {
			t.Errorf("save after %d records: %v", cut, err)
		}
	}
	if err := etcd.Restore(t.Context(), o, view, etcd.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	equalContents(t, open(t, o).Latest(), view)
}

func TestDataOfAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	o := sharedMember(t).options()
	s := open(t, o)
	if _, err := s.Client().Put(t.Context(), o.Prefix+"/.steer/owner", `{"format":2,"id":"x"}`); err != nil {
		t.Fatal(err)
	}
	const want = "is 2, this program knows 1"
	if _, err := etcd.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("open: %v", err)
	}
	if _, err := etcd.Save(t.Context(), o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("save: %v", err)
	}
	if err := etcd.Restore(t.Context(), o, filled(t, 1).Latest(), etcd.RestoreOptions{Replace: true}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("restore: %v", err)
	}
	if err := s.Sync(t.Context(), 0); !errors.Is(err, etcd.ErrReplaced) {
		t.Errorf("a server that was running: %v", err)
	}
}

func TestStoreOfRestoredDataKeepsTheContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(t *testing.T) storage.Store {
		o := ownMember(t, "--unsafe-no-fsync", "--heartbeat-interval=10", "--election-timeout=200").options()
		empty := storage.NewView(1<<40, func(func(*storage.Record) bool) {})
		if err := etcd.Restore(t.Context(), o, empty, etcd.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		return lead(t, o)
	})
}
