// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recordcache

import (
	"runtime"
	"testing"
	"weak"

	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// newRecord returns a record with a value of its own.
func newRecord(size int) *storage.Record {
	return &storage.Record{Key: storage.Key{Bucket: "b", Name: "n"}, Value: make([]byte, size), Modified: 7}
}

// remember caches an encoding of a record that shares its value and has own bytes
// besides it. It reports whether the encoding was made.
func remember(t *testing.T, f *Cache, rec *storage.Record, v *resource.Version, own int) (made bool) {
	t.Helper()
	_, err := f.Pieces(rec, v, Proto, func() (wire.Pieces, int, error) {
		made = true
		return wire.Pieces{Head: make([]byte, own), Rest: [][]byte{rec.Value}}, own, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestEncodingsAreFreedWithTheirRecord: an encoding keeps neither a record that the
// store has dropped nor its value.
func TestEncodingsAreFreedWithTheirRecord(t *testing.T) {
	t.Parallel()
	f, v := New(1<<20), &resource.Version{}
	rec := newRecord(1000)
	record, value := weak.Make(rec), weak.Make(&rec.Value[0])
	remember(t, f, rec, v, 1000)
	if remember(t, f, rec, v, 1000) {
		t.Error("a cached encoding is made again")
	}
	runtime.KeepAlive(rec)
	runtime.GC()
	if record.Value() != nil || value.Value() != nil {
		t.Error("an encoding keeps a dropped record in memory")
	}
	runtime.KeepAlive(f)
}

// TestEncodingBudgetExcludesFreedRecords: encodings that were freed with their records
// take no budget from others, and leave nothing in the queue.
func TestEncodingBudgetExcludesFreedRecords(t *testing.T) {
	t.Parallel()
	const size, limit = 1000, 100_000
	f, v := New(limit), &resource.Version{}
	there := newRecord(size)
	remember(t, f, there, v, size)
	for range 100 {
		for range 20 {
			remember(t, f, newRecord(size), v, size)
		}
		runtime.GC()
	}
	if remember(t, f, there, v, size) {
		t.Error("encodings of freed records evict that of a live one")
	}
	if len(f.queue) > 100 {
		t.Errorf("%d encodings are in the queue, of which one is live", len(f.queue))
	}
}

// TestEncodingBudgetEvictsTheOldest: the oldest are evicted first.
func TestEncodingBudgetEvictsTheOldest(t *testing.T) {
	t.Parallel()
	const size, limit = 1000, 20_000
	f, v := New(limit), &resource.Version{}
	records := make([]*storage.Record, 100)
	for i := range records {
		records[i] = newRecord(size)
		remember(t, f, records[i], v, size)
	}
	made := 0
	for i := range records {
		if derive(records[i]).find(v, Proto) != nil {
			continue
		}
		if made++; made <= i {
			t.Fatalf("the encoding of record %d is evicted before an older one", i)
		}
	}
	if kept := len(records) - made; kept == 0 || kept*size > limit {
		t.Errorf("%d encodings of %d bytes are cached within %d bytes", kept, size, limit)
	}
}

// TestEncodingsAreCachedOnce: two callers that make the same encoding concurrently
// leave one.
func TestEncodingsAreCachedOnce(t *testing.T) {
	t.Parallel()
	f, v, rec := New(1<<20), &resource.Version{}, newRecord(10)
	_, err := f.Pieces(rec, v, Proto, func() (wire.Pieces, int, error) {
		remember(t, f, rec, v, 10)
		return wire.Pieces{Head: make([]byte, 10)}, 10, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.queue) != 1 {
		t.Errorf("one encoding is cached %d times", len(f.queue))
	}
}
