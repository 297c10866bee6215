// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest"
)

func openMemory(*testing.T) storage.Store { return storage.NewMemory(storage.MemoryOptions{}) }

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, openMemory)
}

func TestMemoryAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	storagetest.Model(t, openMemory, storagetest.ModelOptions{})
}

func TestMemoryWithATightHistoryAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	open := func(*testing.T) storage.Store {
		return storage.NewMemory(storage.MemoryOptions{HistoryBytes: 8 << 10})
	}
	storagetest.Model(t, open, storagetest.ModelOptions{Forgets: true, Seed: 1000})
}

func TestMemoryIsLinearizable(t *testing.T) {
	t.Parallel()
	storagetest.Linearize(t, openMemory)
}

// put writes a value in any state of the key.
func put(t testing.TB, s storage.Store, bucket, name, value string) storage.Revision {
	t.Helper()
	rec, err := s.Commit(context.Background(), storage.Write{
		Key: storage.Key{Bucket: bucket, Name: name}, Value: []byte(value), Expect: storage.AnyRevision,
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec.Modified
}

func watch(t testing.TB, s storage.Store, r storage.Range, after storage.Revision) storage.Cursor {
	t.Helper()
	c, err := s.Watch(r, after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestHistoryIsBoundedByAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storage.NewMemory(storage.MemoryOptions{})
		defer s.Close()
		old := put(t, s, "b", "a", "1")
		put(t, s, "b", "a", "2")
		time.Sleep(5 * time.Minute)
		if _, err := s.View(context.Background(), old); err != nil {
			t.Fatalf("after exactly five minutes: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := s.View(context.Background(), old); !errors.Is(err, storage.ErrCompacted) {
			t.Fatalf("view: got error %v, want ErrCompacted", err)
		}
		if _, err := s.Watch(storage.Range{Bucket: "b"}, old); !errors.Is(err, storage.ErrCompacted) {
			t.Fatalf("watch: got error %v, want ErrCompacted", err)
		}
		watch(t, s, storage.Range{Bucket: "quiet"}, old) // nothing of this bucket was dropped
	})
}

func TestHistoryIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	s := storage.NewMemory(storage.MemoryOptions{HistoryBytes: 1 << 20})
	defer s.Close()
	value := strings.Repeat("x", 10<<10)
	for range 300 {
		put(t, s, "b", "a", value)
	}
	kept := 0
	for rev := storage.Revision(1); rev <= 300; rev++ {
		if _, err := s.Watch(storage.Range{Bucket: "b"}, rev); err == nil {
			kept++
		}
	}
	if kept < 90 || kept > 103 {
		t.Fatalf("kept %d events of 10 KiB in 1 MiB", kept)
	}
}

func TestCursorFailsWhileItCanStillResume(t *testing.T) {
	t.Parallel()
	s := storage.NewMemory(storage.MemoryOptions{HistoryBytes: 1 << 20})
	defer s.Close()
	r := storage.Range{Bucket: "b"}
	c := watch(t, s, r, 0)
	if _, err := c.Poll(); err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("x", 10<<10)
	for range 90 {
		put(t, s, "b", "a", value)
	}
	if _, err := c.Poll(); !errors.Is(err, storage.ErrLagged) {
		t.Fatalf("got error %v, want ErrLagged", err)
	}
	// A new cursor begins as far behind, and may catch up.
	if b, err := watch(t, s, r, 0).Poll(); err != nil || len(b.Events) != 90 {
		t.Fatalf("resume: got %d events, %v", len(b.Events), err)
	}
}

func TestCursorOfAQuietRangeNeverLags(t *testing.T) {
	t.Parallel()
	s := storage.NewMemory(storage.MemoryOptions{HistoryBytes: 64 << 10})
	defer s.Close()
	quiet := []storage.Cursor{
		watch(t, s, storage.Range{Bucket: "quiet"}, 0),
		watch(t, s, storage.Range{Bucket: "b", Prefix: "quiet/"}, 0),
	}
	value := strings.Repeat("x", 1<<10)
	for i, c := range quiet {
		got := make(chan error, 1)
		b := storage.Batch{}
		go func() {
			var err error
			b, err = c.Next(context.Background())
			got <- err
		}()
		for range 200 {
			put(t, s, "b", "busy/a", value)
		}
		put(t, s, []string{"quiet", "b"}[i], "quiet/a", "1")
		if err := <-got; err != nil || len(b.Events) != 1 {
			t.Fatalf("cursor %d: got %d events, %v", i, len(b.Events), err)
		}
	}
}

func TestOldViewsAreFoundFromRootsWhateverIsKept(t *testing.T) {
	t.Parallel()
	s := storage.NewMemory(storage.MemoryOptions{})
	defer s.Close()
	const writes, keys = 20000, 50
	for i := range writes {
		put(t, s, "b", fmt.Sprint(i%keys), fmt.Sprint(i))
	}
	for at := storage.Revision(keys); at <= writes; at += 997 {
		v, err := s.View(context.Background(), at)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rec := range v.Ascend("b", "", "") {
			n++
			if rec.Modified > at || rec.Modified <= at-keys {
				t.Fatalf("revision %d shows %s of revision %d", at, rec.Key, rec.Modified)
			}
		}
		if n != keys {
			t.Fatalf("revision %d shows %d records", at, n)
		}
	}
}

func TestForksOfOneViewMayBeTakenConcurrently(t *testing.T) {
	t.Parallel()
	template := storage.NewMemory(storage.MemoryOptions{})
	for i := range 200 {
		put(t, template, fmt.Sprint("b", i%20), fmt.Sprint(i), "v")
	}
	v, err := template.View(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		t.Run("fork", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				s := storage.NewMemory(storage.MemoryOptions{From: v})
				for i := range 20 {
					put(t, s, fmt.Sprint("b", i), "mine", "v")
				}
				if n := v.Count("b1", "", ""); n != 10 {
					t.Fatalf("the template has %d records", n)
				}
				s.Close()
			}
		})
	}
}

func TestThousandIdleStoresAreCheap(t *testing.T) {
	template := storage.NewMemory(storage.MemoryOptions{})
	for i := range 200 {
		put(t, template, fmt.Sprint("b", i%20), fmt.Sprint(i), strings.Repeat("x", 2000))
	}
	const n = 1000
	goroutines := runtime.NumGoroutine()
	before := heap()
	stores := make([]storage.Store, n)
	for i := range stores {
		stores[i] = template.Fork()
		put(t, stores[i], "b1", "mine", "v")
	}
	each := (heap() - before) / n
	t.Logf("%d bytes per store with one write", each)
	if each > 20<<10 {
		t.Errorf("an idle store costs %d bytes", each)
	}
	if g := runtime.NumGoroutine(); g > goroutines {
		t.Errorf("%d goroutines came with the stores", g-goroutines)
	}
	for _, s := range stores {
		s.Close()
	}
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
