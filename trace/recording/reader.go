// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/steer-dev/steer/trace"
)

// maxIndex bounds the memory for one index, in bytes. A segment with a larger one is read
// as a whole.
const maxIndex = 64 << 20

// Reader reads the records in a directory, also while they are being written. It is safe
// for concurrent use, and opens files anew for each call.
type Reader struct{ dir string }

// Open returns a reader of a directory.
func Open(dir string) (*Reader, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("records: %s is not there: name the directory that the operator has as --record-dir", dir)
	case err != nil:
		return nil, fmt.Errorf("records: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("records: %s is no directory", dir)
	}
	return &Reader{dir}, nil
}

// Records yields all records, the oldest segment first. An error is of one file, such as a
// *[DamagedError] or one that wraps [ErrVersion]; what follows is of the next one.
func (r *Reader) Records() iter.Seq2[trace.Record, error] {
	return r.each(func(name string, yield func(trace.Record, error) bool) bool {
		return r.scan(name, nil, yield)
	})
}

// Of yields the records about an object, as [About] says. Errors are as for Records.
func (r *Reader) Of(object trace.Object) iter.Seq2[trace.Record, error] {
	return r.each(func(name string, yield func(trace.Record, error) bool) bool {
		offsets, ok := r.lookUp(name, object)
		if !ok {
			return r.scan(name, &object, yield)
		}
		return len(offsets) == 0 || r.at(name, offsets, object, yield)
	})
}

// each calls read for every segment until it returns false.
func (r *Reader) each(read func(name string, yield func(trace.Record, error) bool) bool) iter.Seq2[trace.Record, error] {
	return func(yield func(trace.Record, error) bool) {
		sizes, err := directory{r.dir}.Sizes()
		if err != nil {
			yield(trace.Record{}, fmt.Errorf("records: %w", err))
			return
		}
		for _, name := range segmentsOf(sizes) {
			if !read(name, yield) {
				return
			}
		}
	}
}

// open opens a segment behind its header. One that has just been deleted is nil.
func (r *Reader) open(name string) (*os.File, error) {
	file, err := os.Open(filepath.Join(r.dir, name+segmentEnd))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	if err := readHeader(name+segmentEnd, file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// scan yields the records of a segment, or those about an object.
func (r *Reader) scan(name string, object *trace.Object, yield func(trace.Record, error) bool) bool {
	file, err := r.open(name)
	if err != nil {
		return yield(trace.Record{}, err)
	}
	if file == nil {
		return true
	}
	defer file.Close()
	all := frames{name: name + segmentEnd, r: bufio.NewReaderSize(file, maxFrame), offset: int64(headerSize)}
	for {
		record, ok, err := all.next()
		switch {
		case err != nil:
			return yield(trace.Record{}, err)
		case !ok:
			return true
		case object != nil && !About(&record, *object):
		case !yield(record, nil):
			return false
		}
	}
}

// lookUp returns where a segment has something about an object, if it has an index.
func (r *Reader) lookUp(name string, object trace.Object) ([]int64, bool) {
	segment, err := os.Stat(filepath.Join(r.dir, name+segmentEnd))
	if err != nil {
		return nil, false
	}
	file, err := os.Open(filepath.Join(r.dir, name+indexEnd))
	if err != nil {
		return nil, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() > maxIndex {
		return nil, false
	}
	index := make([]byte, info.Size())
	if _, err := io.ReadFull(file, index); err != nil {
		return nil, false
	}
	return lookUp(index, segment.Size(), object)
}

// at yields the records at offsets that are about an object.
func (r *Reader) at(name string, offsets []int64, object trace.Object, yield func(trace.Record, error) bool) bool {
	file, err := r.open(name)
	if err != nil {
		return yield(trace.Record{}, err)
	}
	if file == nil {
		return true
	}
	defer file.Close()
	for _, offset := range offsets {
		one := frames{name: name + segmentEnd, r: bufio.NewReaderSize(io.NewSectionReader(file, offset, frameHeader+maxFrame), 4<<10), offset: offset}
		record, ok, err := one.next()
		if err == nil && !ok {
			err = one.damaged("the index names a record that is not there")
		}
		if err != nil {
			return yield(trace.Record{}, err)
		}
		if About(&record, object) && !yield(record, nil) {
			return false
		}
	}
	return true
}
