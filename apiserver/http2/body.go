// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"errors"
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// body is what a client sends with a request. The connection's mu guards it.
type body struct {
	data []byte
	// read is how much of data has been read.
	read int
	// declared is the length that the headers give, -1 for none; got, what came.
	declared, got int64
	// allowed is how much more the client may send; owed, what was read and not
	// yet given back.
	allowed, owed int
	// ended tells that all has come; closed, that nobody wants more.
	ended, closed bool
	// trailer is what came after the body, of what was announced.
	trailer []hpack.HeaderField
	// expects tells that the client waits to be asked for it.
	expects bool
}

// add appends a piece. What has been read makes room for it.
func (b *body) add(piece []byte) {
	if len(b.data)+len(piece) > cap(b.data) && b.read > len(b.data)/2 {
		b.data, b.read = b.data[:copy(b.data, b.data[b.read:])], 0
	}
	b.data = append(b.data, piece...)
}

// discard drops what is there and returns how much that was.
func (b *body) discard() int {
	n := len(b.data) - b.read
	b.data, b.read, b.closed = nil, 0, true
	return n
}

// endOfBody notes that the client has sent everything.
func (st *stream) endOfBody() { st.body.ended = true }

// reader is the body of a request as its handler sees it.
type reader struct{ st *stream }

var errBodyClosed = errors.New("http2: read of a body after Close")

// Read implements io.Reader. It waits for what the client sends.
func (r reader) Read(p []byte) (int, error) {
	st := r.st
	c, b := st.c, &st.body
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.expects && !b.ended && len(b.data) == 0 {
		b.expects = false
		c.out.headers(st.id, status(100), false)
		if err := c.flush(nil); err != nil {
			return 0, err
		}
	}
	for b.read == len(b.data) {
		switch {
		case st.err != nil && !b.ended:
			return 0, st.err
		case b.closed:
			return 0, errBodyClosed
		case b.ended:
			for _, f := range b.trailer {
				st.req.Trailer[f.Name] = append(st.req.Trailer[f.Name], f.Value)
			}
			b.trailer = nil
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		st.changed.Wait()
	}
	n := copy(p, b.data[b.read:])
	if b.read += n; b.read == len(b.data) {
		b.data, b.read = b.data[:0], 0
	}
	return n, r.giveBack(n)
}

// giveBack lets the client send as much again.
func (r reader) giveBack(n int) error {
	st := r.st
	c, b := st.c, &st.body
	before := len(c.out.pending)
	c.giveBack(n)
	if b.owed += n; !b.ended && b.owed >= c.host.limits.streamWindow/2 {
		c.out.windowUpdate(st.id, b.owed)
		b.allowed += b.owed
		b.owed = 0
	}
	if len(c.out.pending) == before {
		return nil
	}
	return c.flush(nil)
}

// Close implements io.Closer. What comes from now on is dropped.
func (r reader) Close() error {
	c := r.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack(r.st.body.discard())
	return nil
}

// wrongEnd is the error of a stream whose body is not as long as declared.
func (st *stream) wrongEnd() error {
	return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeProtocol}
}
