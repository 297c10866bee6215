// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// What a client may send over SPDY. spdystream allocates a frame whole, up to 16 MiB, and
// queues 250 frames of a connection.
const (
	// maxData is the size of a frame of data in bytes, from which on it is split.
	maxData = 8 << 10
	// maxControl bounds a control frame in bytes; the headers of a stream are compressed.
	maxControl = 8 << 10
	// maxHeaders and maxHeader bound the headers of a stream, and the bytes of a name and of
	// a value.
	maxHeaders, maxHeader = 16, 4 << 10
	// maxOpening bounds the streams of which the headers were read, and that were neither
	// accepted nor refused yet.
	maxOpening = 4
)

// The control frames of SPDY/3.1 that clients of Kubernetes send, and two that are ignored.
const (
	synStream    = 1
	rstStream    = 3
	settings     = 4
	ping         = 6
	goAway       = 7
	windowUpdate = 9
)

// frameHeader is the size of the header of a frame.
const frameHeader = 8

// errFrame ends the connection of a client.
var errFrame = errors.New("stream: a frame of SPDY that is not accepted")

// frames is a connection of SPDY of which the reader sees frames of a bounded size, in a
// bounded number: it splits frames of data, and fails at control frames that clients of
// Kubernetes do not send, and at large ones. One goroutine reads.
type frames struct {
	net.Conn
	// opening has a place for each stream that was read; who accepts or refuses it takes one
	// out. gone ends the wait for a place.
	opening chan struct{}
	gone    <-chan struct{}

	head   []byte // of a frame, that is to be read before what follows on the connection
	buffer [frameHeader + 4]byte
	body   uint32 // bytes of the frame that are to be read from the connection
	rest   uint32 // bytes of a frame of data behind body, that are a frame of their own
	data   uint32 // the first word of such a frame
	flags  uint32 // of its last part
	last   uint32 // the last stream that was opened
}

func newFrames(conn net.Conn, gone <-chan struct{}) *frames {
	return &frames{Conn: conn, opening: make(chan struct{}, maxOpening), gone: gone}
}

// Read implements [net.Conn].
func (f *frames) Read(p []byte) (int, error) {
	for {
		switch {
		case len(p) == 0:
			return 0, nil
		case len(f.head) > 0:
			n := copy(p, f.head)
			f.head = f.head[n:]
			return n, nil
		case f.body > 0:
			n, err := f.Conn.Read(p[:min(len(p), int(f.body))])
			f.body -= uint32(n)
			return n, err
		case f.rest > 0:
			f.part()
		default:
			if err := f.next(); err != nil {
				return 0, err
			}
		}
	}
}

// part begins the next part of a frame of data.
func (f *frames) part() {
	f.body = min(f.rest, maxData)
	f.rest -= f.body
	length := f.body
	if f.rest == 0 {
		length |= f.flags
	}
	f.head = f.buffer[:frameHeader]
	binary.BigEndian.PutUint32(f.head, f.data)
	binary.BigEndian.PutUint32(f.head[4:], length)
}

// next reads the header of a frame.
func (f *frames) next() error {
	head := f.buffer[:frameHeader]
	if _, err := io.ReadFull(f.Conn, head); err != nil {
		return err
	}
	word, length := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	flags := length & 0xff000000
	length &= 0xffffff
	if word&(1<<31) == 0 {
		f.data, f.rest, f.flags = word, length, flags
		f.part()
		return nil
	}
	if length > maxControl {
		return fmt.Errorf("%w: a control frame of %d bytes, of at most %d", errFrame, length, maxControl)
	}
	kind := word & 0xffff
	switch {
	case kind == synStream && length > 10:
		return f.open(length)
	case kind == rstStream && length == 8, kind == goAway && length == 8, kind == ping && length == 4:
		// spdystream reads as much whatever the frame says.
		f.head, f.body = head, length
		return nil
	case kind == settings, kind == windowUpdate:
		_, err := io.CopyN(io.Discard, f.Conn, int64(length))
		return err
	}
	return fmt.Errorf("%w: a control frame of the type %d with %d bytes", errFrame, kind, length)
}

// open lets a stream through once there is a place for it. Their numbers are odd and rise:
// spdystream answers others in a goroutine each.
func (f *frames) open(length uint32) error {
	if _, err := io.ReadFull(f.Conn, f.buffer[frameHeader:]); err != nil {
		return err
	}
	stream := binary.BigEndian.Uint32(f.buffer[frameHeader:])
	if stream%2 == 0 || stream <= f.last || stream >= 1<<31 {
		return fmt.Errorf("%w: the stream %d after the stream %d", errFrame, stream, f.last)
	}
	select {
	case f.opening <- struct{}{}:
	case <-f.gone:
		return net.ErrClosed
	}
	f.last, f.head, f.body = stream, f.buffer[:], length-4
	return nil
}

// opened releases the place of a stream that was accepted or refused.
func (f *frames) opened() { <-f.opening }
