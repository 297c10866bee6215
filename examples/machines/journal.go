// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/steer-dev/steer/apiserver/stream"
)

// maxLines is how many lines of its newest output a machine keeps.
const maxLines = 10_000

// maxLine is how much of a line is kept before it is cut into several.
const maxLine = 64 << 10

// journal is the output of a process: its newest lines, in memory.
type journal struct {
	mu      sync.Mutex
	lines   []line
	dropped int           // lines before the first one
	partial []byte        // a line without its end
	grown   chan struct{} // closed with the next line
	ended   bool
}

type line struct {
	at   time.Time
	text []byte
}

func newJournal() *journal { return &journal{grown: make(chan struct{})} }

// Write implements [io.Writer].
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.partial = append(j.partial, p...)
	for {
		n := bytes.IndexByte(j.partial, '\n') + 1
		if n == 0 && len(j.partial) >= maxLine {
			n = maxLine
		}
		if n == 0 {
			return len(p), nil
		}
		j.add(bytes.Clone(j.partial[:n]))
		j.partial = j.partial[n:]
	}
}

// add adds a line, which has its end.
func (j *journal) add(text []byte) {
	j.lines = append(j.lines, line{time.Now(), text})
	if len(j.lines) > maxLines {
		j.lines, j.dropped = j.lines[1:], j.dropped+1
	}
	j.wake()
}

// wake wakes the readers.
func (j *journal) wake() {
	close(j.grown)
	j.grown = make(chan struct{})
}

// end is called once, when nothing more is written.
func (j *journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.partial) > 0 {
		j.add(append(j.partial, '\n'))
	}
	j.ended = true
	j.wake()
}

// from returns the lines from a number on, and what is closed with the next one; nil if
// there is none to come.
func (j *journal) from(n int) (lines []line, next int, grown <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines, next = j.lines[max(n-j.dropped, 0):], j.dropped+len(j.lines)
	if !j.ended {
		grown = j.grown
	}
	return lines, next, grown
}

// open returns a reader of the lines that a client asks for.
func (j *journal) open(ctx context.Context, o stream.LogOptions) io.ReadCloser {
	_, end, _ := j.from(0)
	r := &reader{ctx: ctx, of: j, options: o}
	if o.Tail >= 0 {
		r.next = max(end-int(o.Tail), 0)
	}
	return r
}

// reader reads a journal.
type reader struct {
	ctx     context.Context // of the request, which ends a Read
	of      *journal
	options stream.LogOptions
	next    int
	pending []byte
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	for len(r.pending) == 0 {
		lines, next, grown := r.of.from(r.next)
		r.next = next
		for _, l := range lines {
			if l.at.Before(r.options.Since) {
				continue
			}
			if r.options.Timestamps {
				r.pending = append(l.at.UTC().AppendFormat(r.pending, time.RFC3339Nano), ' ')
			}
			r.pending = append(r.pending, l.text...)
		}
		if len(r.pending) > 0 {
			break
		}
		if !r.options.Follow || grown == nil {
			return 0, io.EOF
		}
		select {
		case <-grown:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

// Close implements [io.Closer].
func (r *reader) Close() error { return nil }
