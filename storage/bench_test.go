// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/steer-dev/steer/storage"
)

// object is a value of 2 KB as an API server would write it.
func object(i int) storage.Write {
	value := fmt.Sprintf(`{"metadata":{"resourceVersion":"","name":"obj-%d"},"pad":"`, i)
	return storage.Write{
		Key:    storage.Key{Bucket: "example.com/objects", Name: fmt.Sprintf("ns-%d/obj-%d", i%100, i)},
		Value:  []byte(value + strings.Repeat("x", 2048-len(value)-2) + `"}`),
		Stamp:  strings.Index(value, `""`) + 1,
		Expect: storage.AnyRevision,
	}
}

// withObjects returns a store of n objects.
func withObjects(b *testing.B, n int) *storage.Memory {
	b.Helper()
	s := storage.NewMemory(storage.MemoryOptions{})
	for i := range n {
		if _, err := s.Commit(context.Background(), object(i)); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

var sizes = []int{1000, 100000}

// BenchmarkWriteAndGet compares a write followed by a get, the worst case for a
// copy-on-write tree, with the write alone.
func BenchmarkWriteAndGet(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := withObjects(b, n)
			i := 0
			write := func() {
				i++
				if _, err := s.Commit(context.Background(), object(i*7919%n)); err != nil {
					b.Fatal(err)
				}
			}
			began := time.Now()
			for range 20000 {
				write()
			}
			alone := float64(time.Since(began)) / 20000
			b.ReportAllocs()
			for b.Loop() {
				write()
				v, err := s.View(context.Background(), 0)
				if err != nil || v.Get(object(1).Key) == nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(alone, "ns/write-alone")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/alone, "x-write-alone")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, k := withObjects(b, n), object(n/2).Key
			for b.Loop() {
				v, _ := s.View(context.Background(), 0)
				if v.Get(k) == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	s := withObjects(b, 100000)
	count := func(v storage.View) (n int) {
		for rec := range v.Ascend("example.com/objects", "", "") {
			n += min(1, len(rec.Value))
		}
		return n
	}
	b.Run("newest", func(b *testing.B) {
		n := 0
		for b.Loop() {
			v, _ := s.View(context.Background(), 0)
			n += count(v)
		}
		b.ReportMetric(float64(b.Elapsed())/float64(n), "ns/record")
	})
	b.Run("count of a namespace", func(b *testing.B) {
		v, _ := s.View(context.Background(), 0)
		for b.Loop() {
			if v.Count("example.com/objects", "ns-7/", "") != 1000 {
				b.Fatal("wrong count")
			}
		}
	})
	for i := range 20000 {
		s.Commit(context.Background(), object(i))
	}
	b.Run("view of the last 3000 revisions", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			at := storage.Revision(100000 + 20000 - i*997%3000)
			if _, err := s.View(context.Background(), at); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWatch measures the store's share of the cost of one event for one watcher.
func BenchmarkWatch(b *testing.B) {
	for _, watchers := range []int{1, 200, 5000} {
		b.Run(fmt.Sprint(watchers), func(b *testing.B) {
			s := withObjects(b, 1000)
			var done, ready sync.WaitGroup
			ctx, cancel := context.WithCancel(context.Background())
			for range watchers {
				c, err := s.Watch(storage.Range{Bucket: "example.com/objects"}, 1000)
				if err != nil {
					b.Fatal(err)
				}
				done.Go(func() {
					defer c.Close()
					for {
						batch, err := c.Next(ctx)
						if err != nil {
							return
						}
						for range batch.Events {
							ready.Done()
						}
					}
				})
			}
			for i := 0; b.Loop(); i++ {
				ready.Add(watchers)
				s.Commit(context.Background(), object(i%1000))
				ready.Wait()
			}
			cancel()
			done.Wait()
			b.ReportMetric(float64(b.Elapsed())/float64(b.N*watchers), "ns/event")
		})
	}
}

// BenchmarkFork forks a store with the built-in objects of a control plane.
func BenchmarkFork(b *testing.B) {
	template := withObjects(b, 200)
	for b.Loop() {
		template.Fork().Close()
	}
}

// BenchmarkMemory measures the live heap of 100,000 objects, all written twice,
// compared with their JSON.
func BenchmarkMemory(b *testing.B) {
	const n = 100000
	for b.Loop() {
		before := heap()
		s := withObjects(b, n)
		created := heap() - before
		for i := range n {
			s.Commit(context.Background(), object(i))
		}
		updated := heap() - before
		s.View(context.Background(), 0)
		b.ReportMetric(float64(created)/n, "B/object")
		b.ReportMetric(float64(created)/n/2048, "x-JSON")
		b.ReportMetric(float64(updated)/n/2048, "x-JSON-with-full-history")
	}
}
