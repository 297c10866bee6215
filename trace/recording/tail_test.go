// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTailReadsEachRecordOnceWhileItIsWritten(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	write(t, Options{Dir: from, Log: quiet}, 0, 20)
	files, err := directory{from}.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	name := segmentsOf(files)[0] + segmentEnd
	whole, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := Open(to)
	if err != nil {
		t.Fatal(err)
	}
	tail := reader.Tail(0)
	last := uint64(0)
	for end := 0; end <= len(whole); end += 7 { // the writer is interrupted everywhere
		if end+7 > len(whole) {
			end = len(whole)
		}
		if err := os.WriteFile(filepath.Join(to, name), whole[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		for record, err := range tail.New() {
			if err != nil {
				t.Fatalf("with %d bytes: %v", end, err)
			}
			if last++; record.ID.Number != last {
				t.Fatalf("with %d bytes it yields record %d, want %d", end, record.ID.Number, last)
			}
		}
	}
	if last != 20 {
		t.Errorf("it yields %d records, want 20", last)
	}
}

func TestTailTellsDamageOnceAndGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, Options{Dir: dir, Log: quiet}, 0, 3)
	files, err := directory{dir}.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, segmentsOf(files)[0]+segmentEnd)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1 // of the last record
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, Options{Dir: dir, Log: quiet}, 3, 2)
	reader, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tail := reader.Tail(0)
	for round, want := range [][2]int{{4, 1}, {0, 0}} {
		records, errs := 0, 0
		for _, err := range tail.New() {
			if err != nil {
				errs++
			} else {
				records++
			}
		}
		if records != want[0] || errs != want[1] {
			t.Errorf("call %d yields %d records and %d errors, want %v", round, records, errs, want)
		}
	}
}

func TestTailBeginsWithTheNewestSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 3 {
		write(t, Options{Dir: dir, Log: quiet}, i*2, 2) // a segment each
	}
	reader, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for _, err := range reader.Tail(1).New() {
		if err != nil {
			t.Fatal(err)
		}
		records++
	}
	if records != 2 {
		t.Errorf("it begins with %d records, want the 2 of the newest segment", records)
	}
}
