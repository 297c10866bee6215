// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import "encoding/binary"

const (
	// headerSize is the size of what every frame begins with.
	headerSize = 9
	// frameSize is that of a full DATA frame with its header: as much as a TLS
	// record holds.
	frameSize = 16 << 10
	// keepUpTo is the size of buffers that are used again.
	keepUpTo = 128 << 10
)

// The parts of frames that are read and written here rather than by the framer,
// which would copy what they carry.
const (
	typeData         = 0x0
	typeHeaders      = 0x1
	flagEnded        = 0x1
	flagEndOfHeaders = 0x4
)

// payload is the body of an answer, laid out as the DATA frames in which it will
// be sent: their headers have their places and are filled in when it is known how
// much the client takes.
type payload struct {
	bytes []byte
	// at is where the next frame begins.
	at int
}

// write appends a piece of the body.
func (p *payload) write(b []byte) {
	for len(b) > 0 {
		if len(p.bytes)%frameSize == 0 {
			p.bytes = append(p.bytes, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		}
		n := min(len(b), frameSize-len(p.bytes)%frameSize)
		p.bytes = append(p.bytes, b[:n]...)
		b = b[n:]
	}
}

// rest is how much of the body has not been cut off.
func (p *payload) rest() int {
	if p.at+headerSize >= len(p.bytes) {
		return 0
	}
	further := (len(p.bytes)-1)/frameSize - (p.at+headerSize)/frameSize
	return len(p.bytes) - p.at - headerSize*(1+further)
}

// cut returns frames with the next n bytes of the body, at most all of them, and
// at least one; the last one ends the stream if ended is set. They are valid until
// the next call.
func (p *payload) cut(stream uint32, n int, ended bool) []byte {
	begin, end := p.at, p.at
	for n > 0 {
		frame := min(((p.at+headerSize)/frameSize+1)*frameSize, len(p.bytes))
		size := min(frame-p.at-headerSize, n)
		n -= size
		flags := byte(0)
		if ended && n == 0 {
			flags = flagEnded
		}
		p.header(size, flags, stream)
		if end = p.at + headerSize + size; end == frame {
			p.at = end
		} else {
			p.at = end - headerSize // over what is sent before
		}
	}
	return p.bytes[begin:end]
}

func (p *payload) header(size int, flags byte, stream uint32) {
	h := p.bytes[p.at : p.at+headerSize]
	h[0], h[1], h[2] = byte(size>>16), byte(size>>8), byte(size)
	h[3], h[4] = typeData, flags
	binary.BigEndian.PutUint32(h[5:], stream)
}

// reset forgets everything and keeps the memory.
func (p *payload) reset() {
	if p.bytes, p.at = p.bytes[:0], 0; cap(p.bytes) > keepUpTo {
		p.bytes = nil
	}
}
