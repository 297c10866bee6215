// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

// bare measures appending 2 KB to a file and flushing it, per write.
func bare(b *testing.B, dir string, n int) time.Duration {
	b.Helper()
	d := vfs.OS(dir)
	f, err := d.Open("bare", true)
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(filepath.Join(dir, "bare"))
	defer f.Close()
	value := bytes.Repeat([]byte("x"), 2048)
	began := time.Now()
	for i := range n {
		if _, err := f.WriteAt(value, int64(i*len(value))); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began) / time.Duration(n)
}

// BenchmarkCommit compares durable creates of 2 KB by several writers with one writer
// that appends as much to a file and calls fdatasync. The two take turns.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			dir := b.TempDir()
			s := openIn(b, dir)
			const turn = 256
			var alone, ours time.Duration
			turns := 0
			for b.Loop() {
				b.StopTimer()
				alone += bare(b, dir, turn)
				b.StartTimer()
				began := time.Now()
				var wg sync.WaitGroup
				for w := range writers {
					wg.Go(func() {
						for i := range turn / writers {
							commit(b, s, storage.Write{
								Key:   storage.Key{Bucket: "b", Name: fmt.Sprint(turns, "/", w, "/", i)},
								Value: bytes.Repeat([]byte("x"), 2048), Stamp: 100,
							})
						}
					})
				}
				wg.Wait()
				ours += time.Since(began) / turn
				turns++
			}
			b.ReportMetric(float64(alone.Microseconds())/float64(turns), "us/bare")
			b.ReportMetric(float64(ours.Microseconds())/float64(turns), "us/write")
			b.ReportMetric(float64(ours)/float64(alone), "x-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkOpen opens a store with 16 MiB of log, and one with a checkpoint of that
// size.
func BenchmarkOpen(b *testing.B) {
	for _, checkpoint := range []bool{false, true} {
		b.Run(fmt.Sprint("checkpoint ", checkpoint), func(b *testing.B) {
			dir := b.TempDir()
			s := openIn(b, dir)
			var wg sync.WaitGroup
			for w := range 64 {
				wg.Go(func() {
					for i := range 8000 / 64 {
						commit(b, s, storage.Write{Key: storage.Key{Bucket: "b", Name: fmt.Sprint(w, "/", i)}, Value: bytes.Repeat([]byte("x"), 2048)})
					}
				})
			}
			wg.Wait()
			if checkpoint {
				if err := s.Checkpoint(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			s.Close()
			for b.Loop() {
				s = openIn(b, dir)
				s.Close()
			}
		})
	}
	b.Run("new", func(b *testing.B) {
		parent := b.TempDir()
		for i := 0; b.Loop(); i++ {
			openIn(b, filepath.Join(parent, fmt.Sprint(i))).Close()
		}
	})
}
