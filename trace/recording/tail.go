// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"maps"
	"os"
	"slices"

	"github.com/steer-dev/steer/trace"
)

// Tail reads a directory as it is written: each record once. It is not safe for concurrent
// use, and holds no file open between calls.
type Tail struct {
	reader *Reader
	recent int64
	begun  bool
	read   map[string]int64 // how far segments were read, in bytes
	broken map[string]bool  // segments that cannot be read further
}

// Tail returns one that begins with the newest segments that together have so many bytes,
// and at least one; 0 means all.
func (r *Reader) Tail(recent int64) *Tail {
	return &Tail{reader: r, recent: recent, read: map[string]int64{}, broken: map[string]bool{}}
}

// New yields the records that have come since, the oldest segment first. What a writer is
// in the midst of writing comes with a later call. An error is of one file, as those of
// [Reader.Records], and is yielded once.
func (t *Tail) New() iter.Seq2[trace.Record, error] {
	return func(yield func(trace.Record, error) bool) {
		sizes, err := directory{t.reader.dir}.Sizes()
		if err != nil {
			yield(trace.Record{}, err)
			return
		}
		names := segmentsOf(sizes)
		maps.DeleteFunc(t.read, func(name string, _ int64) bool { return !slices.Contains(names, name) })
		maps.DeleteFunc(t.broken, func(name string, _ bool) bool { return !slices.Contains(names, name) })
		if !t.begun {
			t.begun = true
			t.skip(names, sizes)
		}
		for _, name := range names {
			if !t.broken[name] && t.read[name] < sizes[name+segmentEnd] && !t.segment(name, yield) {
				return
			}
		}
	}
}

// skip passes over the oldest segments.
func (t *Tail) skip(names []string, sizes map[string]int64) {
	left := t.recent
	for _, name := range slices.Backward(names) {
		size := sizes[name+segmentEnd]
		if t.recent > 0 && left <= 0 {
			t.read[name] = size
		}
		left -= size
	}
}

// segment yields what is new of one.
func (t *Tail) segment(name string, yield func(trace.Record, error) bool) bool {
	file, err := t.reader.open(name)
	if file == nil || err != nil {
		var damaged *DamagedError
		if err == nil || errors.As(err, &damaged) && damaged.Reason == shorter {
			return true // it has just gone, or has just come
		}
		t.broken[name] = true
		return yield(trace.Record{}, err)
	}
	defer file.Close()
	all := frames{name: name + segmentEnd, offset: max(t.read[name], int64(headerSize))}
	if all.offset > int64(headerSize) {
		if _, err := file.Seek(all.offset, io.SeekStart); err != nil {
			return yield(trace.Record{}, err)
		}
	}
	return t.frames(name, file, &all, yield)
}

func (t *Tail) frames(name string, file *os.File, all *frames, yield func(trace.Record, error) bool) bool {
	all.r = bufio.NewReaderSize(file, maxFrame)
	for {
		record, ok, err := all.next()
		var damaged *DamagedError
		switch {
		case errors.As(err, &damaged) && damaged.Reason == withinRecord:
			return true // the rest is being written, or never will be
		case err != nil:
			t.broken[name] = true
			return yield(trace.Record{}, err)
		case !ok:
			return true
		}
		t.read[name] = all.offset
		if !yield(record, nil) {
			return false
		}
	}
}
