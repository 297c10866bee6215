// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/steer-dev/steer/trace"
)

// asOperator makes the test binary a process that records until it is killed.
const asOperator = "STEER_TEST_RECORDS_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asOperator); dir != "" {
		recorder := trace.NewRecorder(trace.Options{})
		if err := NewWriter(recorder, Options{SegmentBytes: 1, Log: quiet, disk: telling{directory{dir}}}).Start(context.Background()); err != nil {
			panic(err)
		}
		for n := 0; ; n++ {
			note(recorder, n)
		}
	}
	goleak.VerifyTestMain(m)
}

// telling says on standard output when something was written.
type telling struct{ directory }

func (d telling) Create(name string) (io.WriteCloser, error) {
	file, err := d.directory.Create(name)
	return tellingFile{file}, err
}

type tellingFile struct{ io.WriteCloser }

func (f tellingFile) Write(b []byte) (int, error) {
	n, err := f.WriteCloser.Write(b)
	fmt.Println("written")
	return n, err
}

func TestRecordsOfAKilledProcessAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	operator := exec.CommandContext(t.Context(), os.Args[0])
	operator.Env = append(os.Environ(), asOperator+"="+dir)
	out, err := operator.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	written := 0
	for lines := bufio.NewScanner(out); written < 10 && lines.Scan(); written++ {
	}
	if err := operator.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = operator.Wait() // it was killed
	if written < 10 {
		t.Fatalf("it ended by itself after %d writes", written)
	}
	records, errs := read(t, dir, nil)
	next := uint64(1)
	for _, r := range records {
		if next += uint64(r.Missed); r.ID.Number != next {
			t.Fatalf("record %d follows %d, with %d missed", r.ID.Number, next-1, r.Missed)
		}
		next++
	}
	files, _ := directory{dir}.Sizes()
	segments := segmentsOf(files)
	last := segments[len(segments)-1] + segmentEnd
	for _, err := range errs {
		if damaged := (*DamagedError)(nil); !errors.As(err, &damaged) || damaged.File != last {
			t.Errorf("%v; only the end of %s may be damaged", err, last)
		}
	}
	if len(records) < 1000 || len(segments) < 3 {
		t.Errorf("%d records in %d segments", len(records), len(segments))
	}
}
