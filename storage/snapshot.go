// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/steer-dev/steer/storage/internal/frame"
)

// snapshotFrame is the size at which a frame of a snapshot is closed.
const snapshotFrame = 128 << 10

// Save writes a view as a snapshot: a stream with a format version and checksums that
// [Load] reads, records and revision. Equal views give equal bytes. It holds no lock
// while it writes.
func Save(ctx context.Context, w io.Writer, v View) error {
	h := frame.Header{Kind: frame.Snapshot, First: uint64(v.Revision())}
	s := &saver{ctx: ctx, w: w, header: h}
	s.buf = frame.Begin(h.Append(nil))
	s.start = frame.HeaderSize
	for bucket := range v.Buckets() {
		for rec := range v.Ascend(bucket, "", "") {
			if err := s.add(rec); err != nil {
				return fmt.Errorf("save snapshot of revision %d: %w", v.Revision(), err)
			}
		}
	}
	if err := s.end(); err != nil {
		return fmt.Errorf("save snapshot of revision %d: %w", v.Revision(), err)
	}
	return nil
}

// saver collects records into frames.
type saver struct {
	ctx    context.Context // a saver lives within one call
	w      io.Writer
	header frame.Header
	buf    []byte
	start  int // of the current frame in buf
	frames uint64
}

func (s *saver) add(rec *Record) error {
	b := frame.AppendBytes(s.buf, rec.Key.Bucket)
	b = frame.AppendBytes(b, rec.Key.Name)
	b = binary.AppendUvarint(b, uint64(rec.Created))
	b = binary.AppendUvarint(b, uint64(rec.Modified))
	b = binary.AppendUvarint(b, uint64(rec.Stamp))
	s.buf = frame.AppendBytes(b, rec.Value)
	if len(s.buf) < snapshotFrame {
		return nil
	}
	return s.flush()
}

// flush writes the current frame and begins the next.
func (s *saver) flush() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.frames++
	b, err := s.header.End(s.buf, s.start, s.frames)
	if err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	s.buf, s.start = frame.Begin(s.buf[:0]), 0
	return nil
}

// end writes the last frame and the end mark, which shows a reader that nothing is
// missing.
func (s *saver) end() error {
	if len(s.buf) > s.start+len(frame.Begin(nil)) {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.flush()
}

// Load reads a snapshot into memory. The view can be read, or be the initial state of a
// store ([MemoryOptions].From). It fails with a [*CorruptError] if the stream is
// incomplete, damaged, or of a newer format.
func Load(r io.Reader) (View, error) {
	fr, err := frame.NewReader(bufio.NewReaderSize(r, 64<<10), frame.Snapshot)
	if bad, ok := errors.AsType[frame.HeaderError](err); ok {
		return nil, &CorruptError{Reason: bad.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("load snapshot: %w", err)
	}
	v := &view{revision: Revision(fr.First), records: &records{epoch: new(epoch)}}
	bucket := ""
	for frames := uint64(1); ; frames++ {
		at := fr.Offset
		number, payload, err := fr.Next()
		switch {
		case errors.Is(err, frame.ErrEnd) && number == frames:
			return v, nil
		case errors.Is(err, frame.ErrBlank) || errors.Is(err, frame.ErrBad) || errors.Is(err, frame.ErrEnd):
			return nil, &CorruptError{Offset: at, Reason: "the snapshot is damaged or incomplete"}
		case err != nil:
			return nil, err
		case number != frames:
			return nil, &CorruptError{Offset: at, Reason: "a part of the snapshot is missing"}
		}
		for f := frame.NewFields(payload); f.More(); {
			rec, err := loadRecord(f, bucket, v.revision)
			if err != nil {
				return nil, &CorruptError{Offset: at, Reason: err.Error()}
			}
			bucket = rec.Key.Bucket
			v.records.put(rec)
		}
	}
}

var errRecord = errors.New("a record contradicts itself")

// loadRecord reads one record; bucket is that of the previous record, whose string is
// shared.
func loadRecord(f *frame.Fields, bucket string, newest Revision) (*Record, error) {
	if b := f.Bytes(); string(b) != bucket {
		bucket = string(b)
	}
	rec := &Record{
		Key:      Key{Bucket: bucket, Name: string(f.Bytes())},
		Created:  Revision(f.Number()),
		Modified: Revision(f.Number()),
		Stamp:    int(f.Number()),
	}
	value := f.Bytes()
	if err := f.Err(); err != nil {
		return nil, err
	}
	rec.Value = append(make([]byte, 0, len(value)), value...)
	w := Write{Key: rec.Key, Value: rec.Value, Stamp: rec.Stamp, Expect: AnyRevision}
	if w.Validate() != nil || rec.Created < 1 || rec.Modified < rec.Created || newest < rec.Modified ||
		!stamped(rec.Value, rec.Stamp, rec.Modified) {
		return nil, errRecord
	}
	return rec, nil
}
