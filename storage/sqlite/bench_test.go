// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkDurableWrites compares a write of an object of 1 KiB with a transaction of
// SQLite that inserts the same row, in turn, so that both have the same disk. It fails if the
// store takes more than twice as long over many writes.
func BenchmarkDurableWrites(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "store.db"))
	plain, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "plain.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	plain.SetMaxOpenConns(1)
	if _, err := plain.ExecContext(b.Context(), "CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT, value TEXT)"); err != nil {
		b.Fatal(err)
	}
	insert, err := plain.PrepareContext(b.Context(), "INSERT INTO rows (name, value) VALUES (?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	value := `{"x": "` + strings.Repeat("x", 1<<10) + `"}`
	var ours, theirs time.Duration
	b.ResetTimer()
	for i := range b.N {
		name := fmt.Sprint(i)
		begin := time.Now()
		put(b, s, name, value)
		ours += time.Since(begin)
		begin = time.Now()
		if _, err := insert.ExecContext(b.Context(), name, value); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(begin)
	}
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "store-µs/op")
	b.ReportMetric(float64(theirs.Microseconds())/float64(b.N), "sqlite-µs/op")
	ratio := float64(ours) / float64(theirs)
	b.ReportMetric(ratio, "ratio")
	if b.N >= 100 && ratio > 2 {
		b.Errorf("a write takes %.2f times as long as the transaction alone, want at most 2", ratio)
	}
}
