// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/frame"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

// recovery reads the segments after a snapshot and makes what it read durable.
type recovery struct {
	dir   vfs.Dir
	found *files
	// last is the newest revision seen.
	last uint64
	// bytes counts the log that was read.
	bytes int64
	// tail is the condition of the newest segment.
	tail tailState
	// good is the end of its last whole frame, end the revision of that frame.
	good int64
	end  uint64
}

// tailState is the condition in which the newest segment was found.
type tailState int

const (
	// The zero value: there is no segment.
	_ tailState = iota
	// tailClean: it was closed.
	tailClean
	// tailTorn: the process was killed; the contents must be made durable.
	tailTorn
	// tailEmpty: it has no frames; the next segment has its name.
	tailEmpty
)

// changes yields the changes after the snapshot.
func (r *recovery) changes() iter.Seq2[storage.Change, error] {
	return func(yield func(storage.Change, error) bool) {
		// A crash may leave segments that a snapshot has replaced.
		segments := r.found.segments
		for len(segments) > 1 && segments[1].revision <= r.last+1 {
			segments = segments[1:]
		}
		for i, s := range segments {
			if s.revision > r.last+1 {
				yield(storage.Change{}, &storage.CorruptError{
					File: s.name, Reason: fmt.Sprintf("it begins with revision %d, but the files before it end with %d", s.revision, r.last),
				})
				return
			}
			ok := true
			err := r.segment(s, i == len(segments)-1, func(c storage.Change) bool {
				ok = yield(c, nil)
				return ok
			})
			if err != nil {
				yield(storage.Change{}, err)
			}
			if err != nil || !ok {
				return
			}
		}
	}
}

// segment yields the changes of one segment.
func (r *recovery) segment(s file, newest bool, yield func(storage.Change) bool) error {
	f, err := r.dir.Open(s.name, false)
	if err != nil {
		return err
	}
	defer f.Close()
	corrupt := func(at int64, reason string) error {
		return &storage.CorruptError{File: s.name, Offset: at, Reason: reason}
	}
	fr, err := frame.NewReader(bufio.NewReaderSize(reader(f), 256<<10), frame.Log)
	if err == nil && fr.First != s.revision {
		return corrupt(0, fmt.Sprintf("it begins with revision %d", fr.First))
	}
	if bad, ok := errors.AsType[frame.HeaderError](err); ok {
		// Frames are written only after the header is durable.
		blank, err := blankAfter(f, frame.HeaderSize)
		if err == nil && (!blank || !newest) {
			err = corrupt(0, bad.Error())
		}
		r.tail = tailEmpty
		return err
	}
	if err != nil {
		return err
	}
	r.end = s.revision - 1
	for {
		r.good = fr.Offset
		number, payload, err := fr.Next()
		switch {
		case errors.Is(err, frame.ErrEnd):
			if number != r.end {
				return corrupt(r.good, fmt.Sprintf("it ends with revision %d instead of %d", r.end, number))
			}
			r.tail = tailClean
			if r.good == frame.HeaderSize {
				r.tail = tailEmpty
			}
		case errors.Is(err, frame.ErrBlank) || errors.Is(err, frame.ErrBad):
			return r.torn(f, fr.Header, s, newest)
		case err != nil:
			return err
		default:
			changes, err := decode(payload, r.end, number)
			if err != nil {
				return corrupt(r.good, err.Error())
			}
			r.end = number
			for _, c := range changes {
				if uint64(c.Revision) > r.last {
					r.last = uint64(c.Revision)
					if !yield(c) {
						return nil
					}
				}
			}
			r.bytes += fr.Offset - r.good
			continue
		}
		return nil
	}
}

// torn handles a segment without an end mark: for an older segment, the next one
// determines its end; in the newest, bytes that are not followed by a whole frame were
// never acknowledged.
func (r *recovery) torn(f vfs.File, h frame.Header, s file, newest bool) error {
	if !newest {
		return nil // a gap is detected at the next segment
	}
	rest, err := io.ReadAll(io.NewSectionReader(f, r.good, 1<<62-r.good))
	if err != nil {
		return err
	}
	if at := h.Find(rest, r.end+1); at >= 0 {
		return &storage.CorruptError{
			File: s.name, Offset: r.good,
			Reason: fmt.Sprintf("the checksum is wrong, but there are later writes at offset %d", r.good+int64(at)),
		}
	}
	r.tail = tailTorn
	if r.good == frame.HeaderSize {
		r.tail = tailEmpty
	}
	return nil
}

// blankAfter reports whether a file has only zeros after an offset.
func blankAfter(f vfs.File, offset int64) (bool, error) {
	rest, err := io.ReadAll(io.NewSectionReader(f, offset, 1<<62-offset))
	return len(bytes.Trim(rest, "\x00")) == 0, err
}

// finish makes what was recovered durable, names included, and removes leftovers.
func (r *recovery) finish() error {
	for _, name := range r.found.leftovers {
		if err := r.dir.Remove(name); err != nil {
			return err
		}
	}
	if n := len(r.found.segments); n > 0 {
		newest := r.found.segments[n-1]
		switch r.tail {
		case tailTorn:
			if err := r.rewrite(newest); err != nil {
				return err
			}
		case tailEmpty:
			if err := r.dir.Remove(newest.name); err != nil {
				return err
			}
			r.found.segments = r.found.segments[:n-1]
		}
	}
	return r.dir.Sync()
}

// rewrite replaces the newest segment with a copy of its whole frames and an end mark:
// a file of which every byte has been written and synced by this process.
func (r *recovery) rewrite(s file) error {
	f, err := r.dir.Open(s.name, false)
	if err != nil {
		return err
	}
	defer f.Close()
	return replace(r.dir, s.name, func(w io.Writer) error {
		buffered := bufio.NewWriterSize(w, 256<<10)
		body := io.NewSectionReader(f, 0, r.good)
		head := make([]byte, frame.HeaderSize)
		if _, err := io.ReadFull(body, head); err != nil {
			return err
		}
		h, err := frame.ParseHeader(head, frame.Log)
		if err != nil {
			return err
		}
		mark, err := h.End(frame.Begin(nil), 0, r.end)
		if err != nil {
			return err
		}
		// A bufio.Writer keeps its first error for Flush.
		_, _ = buffered.Write(head)
		if _, err := io.Copy(buffered, body); err != nil {
			return err
		}
		_, _ = buffered.Write(mark)
		return buffered.Flush()
	})
}
