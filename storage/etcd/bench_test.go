// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/etcd"
)

// ownEtcd starts an etcd that makes each write durable.
func ownEtcd(b *testing.B) *member {
	b.Helper()
	if binary() == "" {
		b.Skip("there is no etcd")
	}
	m, err := newMember(b.TempDir(), "--quota-backend-bytes=8589934592")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.kill)
	return m
}

// led opens a store that leads.
func led(b *testing.B, o etcd.Options) *etcd.Store {
	b.Helper()
	s, err := etcd.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	if _, err := s.Campaign(b.Context(), storage.Member{Identity: "bench"}); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkWrites has 16 writers write 1 KB: to etcd alone, which is the limit, and through a
// store, which returns when the write can be read.
func BenchmarkWrites(b *testing.B) {
	m := ownEtcd(b)
	value := bytes.Repeat([]byte("x"), 1024)
	store := led(b, m.options())
	run := func(b *testing.B, write func(i int64) error) {
		var next atomic.Int64
		b.SetParallelism(max(1, 16/runtime.GOMAXPROCS(0)))
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := write(next.Add(1)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.Run("etcd", func(b *testing.B) {
		at := time.Now().UnixNano()
		run(b, func(i int64) error {
			_, err := store.Client().Put(b.Context(), fmt.Sprintf("/bench/%d/%d", at, i), string(value))
			return err
		})
	})
	b.Run("store", func(b *testing.B) {
		at := time.Now().UnixNano()
		run(b, func(i int64) error {
			_, err := store.Commit(b.Context(), storage.Write{Key: storage.Key{Bucket: "bench", Name: fmt.Sprintf("%d/%d", at, i)}, Value: value})
			return err
		})
	})
}

// BenchmarkOpen opens a store with objects of 1 KB and reports the memory that it takes. The
// numbers of objects are those of the environment variable, or 10,000 and 100,000.
func BenchmarkOpen(b *testing.B) {
	sizes := []int{10_000, 100_000}
	if text := os.Getenv("STEER_BENCH_OBJECTS"); text != "" {
		sizes = nil
		for field := range bytes.FieldsSeq([]byte(text)) {
			var n int
			if _, err := fmt.Sscan(string(field), &n); err != nil {
				b.Fatal(err)
			}
			sizes = append(sizes, n)
		}
	}
	value := append([]byte(`{"v":""}`), bytes.Repeat([]byte(" "), 1016)...)
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := ownEtcd(b)
			o := m.options()
			view := storage.NewView(1, func(yield func(*storage.Record) bool) {
				for i := range n {
					key := storage.Key{Bucket: "example.com/widgets", Name: fmt.Sprintf("ns-%d/widget-%07d", i%100, i)}
					if !yield(&storage.Record{Key: key, Value: value, Created: 1, Modified: 1}) {
						return
					}
				}
			})
			began := time.Now()
			if err := etcd.Restore(b.Context(), o, view, etcd.RestoreOptions{}); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(time.Since(began).Seconds(), "restore-s")
			before := heap()
			b.ResetTimer()
			for b.Loop() {
				began := time.Now()
				s, err := etcd.Open(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(time.Since(began).Seconds(), "open-s")
				b.ReportMetric(float64(heap()-before)/float64(n*len(value)), "heap/JSON")
				began = time.Now()
				listed := 0
				for range s.Latest().Ascend("example.com/widgets", "", "") {
					listed++
				}
				b.ReportMetric(time.Since(began).Seconds()*1000, "list-ms")
				if listed != n {
					b.Fatalf("%d of %d objects", listed, n)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
