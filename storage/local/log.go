// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/frame"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

const (
	// segmentBytes is the size at which the log goes on in a new segment.
	segmentBytes = 16 << 20
	// A segment is filled with zeros ahead of its frames: syncing a write into space
	// that has been written before changes no metadata of the file, which halves the
	// latency. The steps double up to maxAhead.
	minAhead = 16 << 10
	maxAhead = 1 << 20
	// keepBuffer bounds the buffer that is reused between groups.
	keepBuffer = 256 << 10
)

// log is the journal of a store: the newest segment, and the checkpoints that
// replace older ones. Append and Close are called by one goroutine at a time.
type log struct {
	dir       vfs.Dir
	threshold int64
	report    func(Checkpoint)
	memory    *storage.Memory

	active *segment // nil until the next write begins one
	last   uint64   // the newest revision appended
	failed bool     // after an error whose outcome is unknown
	buf    []byte

	checkpoints checkpoints
}

// segment is the file that is being written.
type segment struct {
	file   vfs.File
	name   string
	header frame.Header
	size   int64 // of the written part
	ahead  int64 // end of the space that was zeroed
}

// begin continues after recovery. The next write begins a new segment.
func (l *log) begin(m *storage.Memory, found *files, r *recovery) {
	l.memory = m
	l.last = r.last
	l.checkpoints.files = *found
	l.checkpoints.logged = r.bytes
}

// Append implements storage.Journal.
func (l *log) Append(changes []storage.Change) error {
	err := l.append(changes)
	l.failed = err != nil && !errors.Is(err, storage.ErrFull)
	return err
}

func (l *log) append(changes []storage.Change) error {
	if l.active == nil || !l.active.empty() && (l.active.size >= segmentBytes || l.checkpoints.wantsRotation()) {
		if err := l.rotate(uint64(changes[0].Revision)); err != nil {
			return err
		}
	}
	last := uint64(changes[len(changes)-1].Revision)
	b, err := l.active.header.End(encode(frame.Begin(l.buf[:0]), changes), 0, last)
	if err != nil {
		return err
	}
	l.buf = b
	if err := l.active.reserve(int64(len(l.buf))); err != nil {
		return full(err)
	}
	if err := l.active.write(l.buf); err != nil {
		return err
	}
	l.last = last
	l.checkpoints.grow(l, int64(len(l.buf)))
	if cap(l.buf) > keepBuffer {
		l.buf = nil
	}
	return nil
}

// full converts the error of a step that has no effect if it fails: for lack of space,
// it can be retried.
func full(err error) error {
	if vfs.IsFull(err) {
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	return err
}

// rotate begins a segment. It is durable, with its name, before a frame is written to
// it. An empty segment is never followed by another, which would have its name. Without
// space, rotate has no effect.
func (l *log) rotate(first uint64) error {
	var salt [8]byte
	rand.Read(salt[:]) // never fails
	s := &segment{
		name:   fileName(first, logSuffix),
		header: frame.Header{Kind: frame.Log, First: first, Salt: binary.LittleEndian.Uint64(salt[:])},
	}
	f, err := l.dir.Open(s.name, true)
	if err != nil {
		return full(err)
	}
	s.file = f
	err = full(s.begin())
	if err == nil {
		err = l.dir.Sync() // after a failed sync it is unknown which names are lost
	}
	if err != nil {
		f.Close()
		_ = l.dir.Remove(s.name) // recovery does it otherwise
		return err
	}
	if l.active != nil {
		l.active.file.Close()
	}
	l.active = s
	l.checkpoints.add(file{s.name, first})
	return nil
}

// empty reports whether the segment has no frames.
func (s *segment) empty() bool { return s.size == frame.HeaderSize }

// begin writes the header and the first zeros.
func (s *segment) begin() error {
	b := make([]byte, minAhead)
	s.header.Append(b[:0])
	if _, err := s.file.WriteAt(b, 0); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.size, s.ahead = frame.HeaderSize, minAhead
	return nil
}

// reserve fills the space for n more bytes with zeros, so that writing them cannot find
// the disk full.
func (s *segment) reserve(n int64) error {
	for s.size+n > s.ahead {
		step := min(s.ahead, maxAhead)
		if _, err := s.file.WriteAt(make([]byte, step), s.ahead); err != nil {
			return err
		}
		s.ahead += step
	}
	return nil
}

// write appends a frame durably. After a failure the state of the file is unknown, and
// a second sync would not report what the first one has dropped: there is none.
func (s *segment) write(b []byte) error {
	_, err := s.file.WriteAt(b, s.size)
	if err == nil {
		err = s.file.Sync()
	}
	switch {
	case vfs.IsFull(err):
		return fmt.Errorf("no space for a write into reserved space, which a copy-on-write file system does not keep: free some before the restart: %w", err)
	case err != nil:
		return err
	}
	s.size += int64(len(b))
	return nil
}

// Close implements storage.Journal: it ends the segment with a mark, which shows a
// reader that nothing is missing.
func (l *log) Close() error {
	l.checkpoints.stop()
	if l.active == nil {
		return nil
	}
	defer l.active.file.Close()
	mark, err := l.active.header.End(frame.Begin(nil), 0, l.last)
	if err != nil || l.failed || l.active.reserve(int64(len(mark))) != nil {
		return nil // recovery does not need the mark
	}
	if err := l.active.write(mark); err != nil {
		return fmt.Errorf("end the log: %w", err)
	}
	return nil
}
