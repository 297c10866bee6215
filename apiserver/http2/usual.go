// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"bytes"
	"encoding/binary"
	"net/http"
)

// usual takes the frames of usual requests out of the input's buffer, without the
// framer, which would copy and decode them: pieces of a body, and headers that the
// client has sent before. It knows them exactly; false leaves the next frame to the
// framer.
func (c *connection) usual() (bool, error) {
	c.repeats.candidate = c.repeats.candidate[:0]
	h, err := c.input.Peek(headerSize)
	if err != nil {
		return false, nil //nolint:nilerr // the framer meets it as well
	}
	size := int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	kind, flags := h[3], h[4]
	id := binary.BigEndian.Uint32(h[5:])
	data := kind == typeData && flags&^flagEnded == 0
	headers := kind == typeHeaders && flags&^flagEnded == flagEndOfHeaders && size <= maxBlock
	if kind == typeHeaders && !headers {
		c.repeats.forget()
	}
	if !data && !headers || id == 0 || id > maxStream || headerSize+size > c.input.Size() {
		return false, nil
	}
	frame, err := c.input.Peek(headerSize + size)
	if err != nil {
		return false, nil //nolint:nilerr // as above
	}
	ended := flags&flagEnded != 0
	var took bool
	if data {
		took, err = c.usualData(id, frame[headerSize:], ended)
	} else {
		took, err = c.usualHeaders(id, frame[headerSize:], ended)
	}
	if took {
		_, _ = c.input.Discard(len(frame)) // it is there
	}
	return took, err
}

func (c *connection) usualData(id uint32, data []byte, ended bool) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || !c.settled {
		return false, nil
	}
	return true, c.takeData(id, data, len(data), ended)
}

func (c *connection) usualHeaders(id uint32, block []byte, ended bool) (bool, error) {
	head := c.repeats.find(block)
	if head == nil {
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || !c.settled || c.streams[id] != nil {
		return false, nil
	}
	return true, c.takeRequest(id, ended, head)
}

const (
	// maxBlock is the size of a block of headers that is remembered; each byte is a
	// header.
	maxBlock   = 32
	maxRepeats = 4
	maxStream  = 1<<31 - 1
)

// repeats remembers what blocks of headers said that refer to nothing but the
// compression table (RFC 7541, 6.1): as long as the table is as it is, they say the
// same. Every other block may change it. It is the reader's alone.
type repeats struct {
	known [maxRepeats]repeat
	next  int
	// candidate is the block that the framer decodes, if it may be remembered.
	candidate []byte
}

type repeat struct {
	block []byte
	head  *head
}

// find returns what a block says if it is known. Else the block becomes the
// candidate, or changes the table.
func (r *repeats) find(block []byte) *head {
	for i := range r.known {
		if k := &r.known[i]; k.head != nil && bytes.Equal(k.block, block) {
			return k.head
		}
	}
	if !refers(block) {
		r.forget()
		return nil
	}
	r.candidate = append(r.candidate, block...)
	return nil
}

// refers tells whether a block consists of nothing but references, of a byte each.
func refers(block []byte) bool {
	for _, b := range block {
		const indexed, further = 0x80, 0xff // further says that more bytes belong to it
		if b < indexed || b == further {
			return false
		}
	}
	return true
}

// remember keeps what the candidate, if there is one, has turned out to say.
func (r *repeats) remember(h *head) {
	if len(r.candidate) == 0 || h.refusal != nil {
		return
	}
	k := &r.known[r.next%maxRepeats]
	r.next++
	k.block, k.head = append(k.block[:0], r.candidate...), h.template()
}

func (r *repeats) forget() {
	for i := range r.known {
		r.known[i].head = nil
	}
}

// template returns a head of which requests can be made again and again.
func (h *head) template() *head {
	t := *h
	t.lines = make([]line, 0, len(h.header))
	t.header, t.values = nil, 0
	for name, values := range h.header {
		t.lines = append(t.lines, line{name, append([]string(nil), values...)})
		t.values += len(values)
	}
	return &t
}

// fields returns a header that is the request's own; all values share one array.
func (h *head) fields() http.Header {
	if h.lines == nil {
		return h.header
	}
	header, values := make(http.Header, len(h.lines)), make([]string, h.values)
	for _, l := range h.lines {
		n := copy(values, l.values)
		header[l.name] = values[:n:n]
		values = values[n:]
	}
	return header
}
