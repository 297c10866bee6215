// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steer-dev/steer/trace"
)

const (
	defaultBytes   = 256 << 20
	defaultSegment = 8 << 20
	leastSegment   = 64 << 10
	// batchBytes is how much is written at once.
	batchBytes = 256 << 10
	// gather is how long records are gathered for one write while many come.
	gather = 10 * time.Millisecond
	// retryAfter is how long the writer waits after an error of the disk.
	retryAfter = time.Second
)

// Options of a [Writer].
type Options struct {
	// Dir has the files; it is made if it is missing. Several writers may share one.
	// Required.
	Dir string
	// Bytes bounds the files of the directory, those of former processes included: the
	// oldest segments are deleted. 0 means 256 MiB.
	Bytes int64
	// SegmentBytes bounds one segment. 0 means 8 MiB, at least 64 KiB is used, and at
	// most a quarter of Bytes.
	SegmentBytes int64
	// Log takes errors of the disk. nil means slog.Default().
	Log *slog.Logger

	disk disk
}

// ErrStopped is returned by Start after Stop.
var ErrStopped = errors.New("records: the writer was stopped; make another one")

// Writer writes the records of a recorder to files. No reconcile waits for it: what the
// recorder has to overwrite before it is written is dropped and counted.
type Writer struct {
	recorder *trace.Recorder
	options  Options
	dropped  atomic.Uint64

	mu      sync.Mutex
	started bool
	cancel  context.CancelFunc
	stopped chan struct{} // closed when the goroutine has ended; nil before Start
	ended   bool
}

// NewWriter returns a writer of what a recorder keeps and records from then on.
func NewWriter(recorder *trace.Recorder, o Options) *Writer {
	o.Bytes = cmp.Or(o.Bytes, defaultBytes)
	o.SegmentBytes = max(min(cmp.Or(o.SegmentBytes, defaultSegment), o.Bytes/4), leastSegment)
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Writer{recorder: recorder, options: o}
}

// Dropped counts the records that were not written.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// Start makes the directory and begins to write. The context bounds the start alone.
func (w *Writer) Start(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
		return ErrStopped
	case w.started:
		return nil
	case w.options.Dir == "" && w.options.disk == nil:
		return errors.New("records: Options.Dir is required")
	}
	if w.options.disk == nil {
		dir, err := openDirectory(w.options.Dir)
		if err != nil {
			return err
		}
		w.options.disk = dir
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.started, w.cancel, w.stopped = true, cancel, make(chan struct{})
	go func() {
		defer close(w.stopped)
		w.run(ctx)
	}()
	return nil
}

// Stop writes what the recorder has, and the index, and returns when that is done: it
// waits for the disk.
func (w *Writer) Stop() error {
	w.mu.Lock()
	w.ended = true
	stopped := w.stopped
	if w.cancel != nil {
		w.cancel()
	}
	w.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	return nil
}

// run writes until ctx ends, and then what is left.
func (w *Writer) run(ctx context.Context) {
	cursor := w.recorder.Cursor()
	at := &segment{disk: w.options.disk, most: w.options.SegmentBytes, all: w.options.Bytes}
	failing := false
	for {
		more, err := w.drain(cursor, at)
		wait := gather
		if err != nil {
			wait = retryAfter
			if !failing {
				w.options.Log.Error("records of reconciles cannot be written to files; they are dropped until they can", "dir", w.options.Dir, "error", err)
			}
		} else if failing {
			w.options.Log.Info("records of reconciles are written to files again", "dir", w.options.Dir, "dropped", w.Dropped())
		}
		failing = err != nil
		if err == nil {
			select {
			case <-more:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			_, _ = w.drain(cursor, at) // the error is logged, or told by the damaged end
			_ = at.close()
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// drain writes all that the recorder has, and returns a channel that is closed when
// there is more. After an error the records of the batch at hand are lost.
func (w *Writer) drain(cursor *trace.Cursor, at *segment) (more <-chan struct{}, err error) {
	for {
		encoded, missed, more := cursor.Next()
		if missed > 0 {
			w.dropped.Add(uint64(missed))
			at.missed += missed
		}
		if encoded != nil {
			if err := at.add(encoded); err != nil {
				return nil, w.lost(at, err)
			}
		}
		if encoded == nil || len(at.batch) >= batchBytes {
			if err := at.flush(); err != nil {
				return nil, w.lost(at, err)
			}
		}
		if encoded == nil {
			return more, nil
		}
	}
}

func (w *Writer) lost(at *segment, err error) error {
	w.dropped.Add(uint64(at.records))
	at.fail()
	return err
}

// segment is the one that is being written.
type segment struct {
	disk      disk
	most, all int64 // bytes of this one, and of all

	file    io.WriteCloser // nil: none is open
	name    string
	number  int
	size    int64 // with the batch
	index   index
	batch   []byte
	records int // of the batch
	carried int // missed before records of the batch
	missed  int // before the next record
}

// add puts a record into the batch.
func (s *segment) add(encoded []byte) error {
	record, err := trace.Decode(encoded)
	if err != nil {
		return err // it cannot be: the recorder wrote it
	}
	s.records++
	if s.file != nil && s.size >= s.most {
		if err := s.close(); err != nil {
			return err
		}
		s.records = 1 // this one
	}
	if s.file == nil {
		if err := s.open(record.ID.Recorder, record.Began); err != nil {
			return err
		}
	}
	before := len(s.batch)
	s.batch = appendFrame(s.batch, encoded, s.missed)
	s.index.add(&record, s.size)
	s.size += int64(len(s.batch) - before)
	s.carried, s.missed = s.carried+s.missed, 0
	return nil
}

// open begins a segment, after it has made room for it.
func (s *segment) open(writer uint64, began time.Time) error {
	sizes, err := s.disk.Sizes()
	if err != nil {
		return err
	}
	s.number++
	s.name = segmentName(began, writer, s.number)
	for _, name := range surplus(sizes, s.all-s.most-s.most/2, s.name) { // the index counts as well
		if err := s.disk.Remove(name); err != nil {
			return err
		}
	}
	file, err := s.disk.Create(s.name + segmentEnd)
	if err != nil {
		return err
	}
	s.file, s.index = file, index{}
	s.batch = appendHeader(s.batch[:0])
	s.size = int64(len(s.batch))
	return nil
}

// flush writes the batch.
func (s *segment) flush() error {
	if s.file == nil || len(s.batch) == 0 {
		return nil
	}
	if n, err := s.file.Write(s.batch); err != nil {
		return fmt.Errorf("write %s: %w", s.name, err)
	} else if n < len(s.batch) {
		return fmt.Errorf("write %s: %w", s.name, io.ErrShortWrite)
	}
	s.batch, s.records, s.carried = s.batch[:0], 0, 0
	return nil
}

// close completes the segment and writes its index.
func (s *segment) close() error {
	if s.file == nil {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	file := s.file
	s.file = nil
	if err := file.Close(); err != nil {
		return err
	}
	out, err := s.disk.Create(s.name + indexEnd)
	if err != nil {
		return err
	}
	_, err = out.Write(s.index.encode(s.size))
	return errors.Join(err, out.Close())
}

// fail gives the segment up with what its batch has.
func (s *segment) fail() {
	s.missed += s.records + s.carried
	s.batch, s.records, s.carried = s.batch[:0], 0, 0
	if s.file != nil {
		_ = s.file.Close() // the error that matters is the one before
		s.file = nil
	}
}
