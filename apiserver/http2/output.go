// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"encoding/binary"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// maxPending is how much waits for a write under way before those who have
	// more to send wait as well.
	maxPending = 64 << 10
	// together is up to which size frames of two origins are copied into one
	// piece.
	together = frameSize
	// keepIdle is how much memory for frames a connection keeps for the next ones.
	keepIdle = 8 << 10
	// maxTurns is how often a handler writes what others have left before it goes
	// on with its own work.
	maxTurns = 16
)

// output is what goes to the client, in order. c.mu guards it.
type output struct {
	// pending are whole frames.
	pending []byte
	// writing tells that somebody writes, who takes along what is pending.
	writing bool
	// moved is signalled when pending was taken or the output failed.
	moved sync.Cond
	err   error

	framer  *http2.Framer // writes to pending
	encoder *hpack.Encoder
	block   block // of headers under way
	// spare is the memory of pending while that is written.
	spare []byte
	// patience is when a write that began now would fail.
	patience time.Time
}

// block is a buffer that hpack writes into.
type block struct{ bytes []byte }

func (b *block) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

// Write implements io.Writer for the framer.
func (o *output) Write(p []byte) (int, error) {
	o.pending = append(o.pending, p...)
	return len(p), nil
}

func (o *output) init(mu *sync.Mutex) {
	o.moved.L = mu
	o.framer = http2.NewFramer(o, nil)
	o.encoder = hpack.NewEncoder(&o.block)
}

// The framer writes into memory and is given what it accepts: it does not fail.

func (o *output) settings(s ...http2.Setting)      { _ = o.framer.WriteSettings(s...) }
func (o *output) settingsAck()                     { _ = o.framer.WriteSettingsAck() }
func (o *output) ping(ack bool, data [8]byte)      { _ = o.framer.WritePing(ack, data) }
func (o *output) windowUpdate(id uint32, n int)    { _ = o.framer.WriteWindowUpdate(id, uint32(n)) }
func (o *output) reset(id uint32, c http2.ErrCode) { _ = o.framer.WriteRSTStream(id, c) }
func (o *output) goAway(last uint32, c http2.ErrCode) {
	_ = o.framer.WriteGoAway(last, c, nil)
}

// end sends an empty frame that ends a stream.
func (o *output) end(id uint32) {
	var h [headerSize]byte
	h[3], h[4] = typeData, flagEnded
	binary.BigEndian.PutUint32(h[5:], id)
	o.pending = append(o.pending, h[:]...)
}

// headers sends a list of headers; the order of calls is that on the wire, on
// which compression depends.
func (o *output) headers(id uint32, fields []hpack.HeaderField, ended bool) {
	o.block.bytes = o.block.bytes[:0]
	for _, f := range fields {
		_ = o.encoder.WriteField(f) // into memory
	}
	rest := o.block.bytes
	piece := rest[:min(len(rest), frameSize)]
	rest = rest[len(piece):]
	_ = o.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: piece, EndStream: ended, EndHeaders: len(rest) == 0})
	for len(rest) > 0 {
		piece = rest[:min(len(rest), frameSize)]
		rest = rest[len(piece):]
		_ = o.framer.WriteContinuation(id, len(rest) == 0, piece)
	}
	if cap(o.block.bytes) > frameSize {
		o.block.bytes = nil
	}
}

func (o *output) fail(err error) {
	if o.err == nil {
		o.err = err
	}
	o.pending = nil
	o.moved.Broadcast()
}

// flush sends what is pending and then own, frames of the caller, which it does
// not keep. c.mu is held; it is released while writing. If somebody else writes,
// they will send it, and an error shows with the next call.
func (c *connection) flush(own []byte) error {
	o := &c.out
	for o.writing && o.err == nil && len(o.pending)+len(own) > maxPending && len(o.pending) > 0 {
		o.moved.Wait()
	}
	if o.err != nil {
		return o.err
	}
	if o.writing {
		o.pending = append(o.pending, own...)
		return nil
	}
	o.writing = true
	err := c.drain(own)
	o.writing = false
	c.finish()
	return err
}

// drain writes until nothing is pending.
func (c *connection) drain(own []byte) error {
	o := &c.out
	for turn := 0; o.err == nil && len(o.pending)+len(own) > 0; turn++ {
		if turn == maxTurns {
			c.handlers.Go(c.relieve)
			return nil
		}
		first := o.pending
		o.pending, o.spare = o.spare[:0], nil
		if len(first) > 0 && len(first)+len(own) <= together {
			first, own = append(first, own...), nil
		}
		c.mu.Unlock()
		err := c.write(first, own)
		c.mu.Lock()
		own = nil
		o.spare = first[:0]
		if err != nil {
			c.fail(err)
			c.hangUp()
		}
		o.moved.Broadcast()
	}
	if cap(o.pending) > keepIdle {
		o.pending = nil
	}
	if cap(o.spare) > keepIdle {
		o.spare = nil
	}
	return o.err
}

// relieve goes on writing in place of a handler.
func (c *connection) relieve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.flush(nil) // who has something to send next is told
}

// write sends frames in one system call if the socket lets it. Only who has set
// writing calls it.
func (c *connection) write(first, second []byte) error {
	if stall := c.host.limits.stall; stall > 0 {
		// Setting a deadline costs something, so it is moved in large steps.
		if now := time.Now(); c.out.patience.Sub(now) < stall {
			c.out.patience = now.Add(2 * stall)
			if err := c.conn.SetWriteDeadline(c.out.patience); err != nil {
				return err
			}
		}
	}
	if c.socket == nil || len(first)+len(second) <= frameSize && (len(first) == 0 || len(second) == 0) {
		return c.writeAll(first, second)
	}
	p := c.host.buffers.Get().(*payload)
	c.socket.hold(p.bytes[:0])
	err := c.writeAll(first, second)
	var sent error
	if p.bytes, sent = c.socket.release(); err == nil {
		err = sent
	}
	p.reset()
	c.host.buffers.Put(p)
	return err
}

func (c *connection) writeAll(first, second []byte) error {
	if len(first) > 0 {
		if _, err := c.conn.Write(first); err != nil {
			return err
		}
	}
	if len(second) > 0 {
		_, err := c.conn.Write(second)
		return err
	}
	return nil
}
