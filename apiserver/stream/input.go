// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"io"
	"sync"
)

// maxUnread bounds what a client has sent to a channel and the command has not read, in
// bytes.
const maxUnread = 64 << 10

// input is a channel that a client writes to, with a bounded buffer: while the command does
// not read, what comes behind on the connection is read all the same, its end above all.
type input struct {
	mu      sync.Mutex
	changed sync.Cond
	data    []byte
	ended   bool // nothing more is written
	dropped bool // nothing more is read
}

func newInput() *input {
	in := &input{}
	in.changed.L = &in.mu
	return in
}

// Write implements [io.Writer]. It waits while the buffer is full, and discards what is not read
// any more.
func (in *input) Write(p []byte) (n int, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for n < len(p) {
		for len(in.data) >= maxUnread && !in.dropped && !in.ended {
			in.changed.Wait()
		}
		switch {
		case in.dropped:
			return len(p), nil
		case in.ended:
			return n, io.ErrClosedPipe
		}
		part := p[n:min(len(p), n+maxUnread-len(in.data))]
		in.data = append(in.data, part...)
		n += len(part)
		in.changed.Broadcast()
	}
	return n, nil
}

// Read implements [io.Reader].
func (in *input) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.data) == 0 && !in.ended && !in.dropped {
		in.changed.Wait()
	}
	if in.dropped || len(in.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, in.data)
	if in.data = in.data[n:]; len(in.data) == 0 {
		in.data = nil
	}
	in.changed.Broadcast()
	return n, nil
}

// end is the end of the input, behind what was written.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.changed.Broadcast()
}

// drop discards what was not read, and all that comes.
func (in *input) drop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.dropped, in.data = true, nil
	in.changed.Broadcast()
}
