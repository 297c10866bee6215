// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"io"
	"iter"
	"sync"
	"sync/atomic"
)

const (
	defaultBudget = 4 << 20
	// segmentSize is the unit in which memory is taken and old records are
	// forgotten. The largest record fits many times.
	segmentSize = 64 << 10
)

// Options of a [Recorder].
type Options struct {
	// Budget bounds the memory that records take, in bytes; it is taken as
	// records come. 0 means 4 MiB, at least 128 KiB is used; a negative budget
	// keeps no records, so that reconciles have ids and nothing else.
	Budget int
	// Seed makes the ids of records the same every time: those of recorders with different
	// seeds differ. 0 draws the number that ids begin with.
	Seed uint64
}

// Recorder keeps the newest records. It is safe for concurrent use, holds no
// goroutine and needs no closing. A nil Recorder gives no ids and keeps nothing.
type Recorder struct {
	id      uint64
	next    atomic.Uint64
	off     bool
	limit   int // of segments
	buffers sync.Pool
	active  active

	mu       sync.Mutex
	segments [][]byte // oldest first; records framed by their length
	first    uint64   // number of segments[0]
	written  uint64   // records ever written
	dropped  []uint64 // per segment: records written before it
	changed  chan struct{}
}

// NewRecorder returns an empty recorder.
func NewRecorder(o Options) *Recorder {
	if o.Budget == 0 {
		o.Budget = defaultBudget
	}
	r := &Recorder{off: o.Budget < 0, limit: max(o.Budget/segmentSize, 2)}
	if r.id = o.Seed; r.id == 0 {
		var id [8]byte
		_, _ = rand.Read(id[:]) // it does not fail
		r.id = binary.BigEndian.Uint64(id[:])
	}
	r.buffers.New = func() any { return &buffer{b: make([]byte, 0, 512)} }
	return r
}

// Begin opens a record in a, which must be a zero Active, and gives it an id.
func (r *Recorder) Begin(a *Active, s Start) {
	if r == nil {
		return
	}
	a.id = ID{Recorder: r.id, Number: r.next.Add(1)}
	if r.off {
		return
	}
	a.recorder, a.goroutine = r, s.Goroutine
	a.buffer = r.buffers.Get().(*buffer)
	a.buffer.start(a.id, &s)
	r.active.add(a)
}

// append stores a finished record and takes its buffer back.
func (r *Recorder) append(b *buffer) {
	var frame [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(frame[:], uint64(len(b.b)))

	r.mu.Lock()
	last := len(r.segments) - 1
	if last < 0 || len(r.segments[last])+n+len(b.b) > segmentSize {
		r.grow()
		last = len(r.segments) - 1
	}
	s := append(r.segments[last], frame[:n]...)
	r.segments[last] = append(s, b.b...)
	r.written++
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	r.mu.Unlock()

	b.b = b.b[:0]
	r.buffers.Put(b)
}

// grow starts a segment, in the memory of the oldest once the budget is used.
func (r *Recorder) grow() {
	var s []byte
	if len(r.segments) == r.limit {
		s = r.segments[0][:0]
		copy(r.segments, r.segments[1:])
		copy(r.dropped, r.dropped[1:])
		r.segments = r.segments[:r.limit-1]
		r.dropped = r.dropped[:r.limit-1]
		r.first++
	} else {
		s = make([]byte, 0, segmentSize)
	}
	r.segments = append(r.segments, s)
	r.dropped = append(r.dropped, r.written)
}

// place is a reader's position: a segment and an offset in it, and how many
// records were written before it.
type place struct {
	segment uint64
	offset  int
	seen    uint64
}

// end returns the place after the newest record. The lock is held.
func (r *Recorder) end() place {
	last := len(r.segments) - 1
	if last < 0 {
		return place{}
	}
	return place{segment: r.first + uint64(last), offset: len(r.segments[last]), seen: r.written}
}

// read copies the record at p into buf and moves p behind it. It reports false
// and a channel that closes with the next record when there is none.
func (r *Recorder) read(p *place, buf []byte, wait bool) (_ []byte, missed int, more <-chan struct{}, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.segments) > 0 && p.segment < r.first {
		missed = int(r.dropped[0] - p.seen)
		*p = place{segment: r.first, seen: r.dropped[0]}
	}
	for i := p.segment - r.first; i < uint64(len(r.segments)); i++ {
		s := r.segments[i]
		if p.offset < len(s) {
			size, n := binary.Uvarint(s[p.offset:])
			from := p.offset + n
			p.offset = from + int(size)
			p.seen++
			return append(buf[:0], s[from:p.offset]...), missed, nil, true
		}
		if i+1 < uint64(len(r.segments)) {
			*p = place{segment: p.segment + 1, seen: p.seen}
		}
	}
	if wait && r.changed == nil {
		r.changed = make(chan struct{})
	}
	return buf, missed, r.changed, false
}

// Records yields what is kept, oldest first, up to the newest record at the
// time of the call.
func (r *Recorder) Records() iter.Seq[Record] {
	if r == nil {
		return func(func(Record) bool) {}
	}
	return func(yield func(Record) bool) {
		r.mu.Lock()
		end := r.written
		p := place{segment: r.first}
		if len(r.dropped) > 0 {
			p.seen = r.dropped[0]
		}
		r.mu.Unlock()
		var buf []byte
		for p.seen < end {
			var ok bool
			var missed int
			if buf, missed, _, ok = r.read(&p, buf, false); !ok {
				return
			}
			record, _ := Decode(buf) // it is one of ours
			record.Missed = missed
			if !yield(record) {
				return
			}
		}
	}
}

// Cursor reads the encoded records of a [Recorder] one after the other, for those who
// keep them elsewhere. It is not safe for concurrent use.
type Cursor struct {
	recorder *Recorder
	at       place
	buf      []byte
}

// Cursor returns one that begins with the oldest record that is kept.
func (r *Recorder) Cursor() *Cursor {
	if r == nil {
		return &Cursor{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Cursor{recorder: r, at: place{segment: r.first}}
	if len(r.dropped) > 0 {
		c.at.seen = r.dropped[0]
	}
	return c
}

// Next returns the next record for [Decode], valid until the call after this one, and
// how many were overwritten before it. Without one it returns nil, and a channel that is
// closed with the next record.
func (c *Cursor) Next() (encoded []byte, missed int, more <-chan struct{}) {
	if c.recorder == nil {
		return nil, 0, nil
	}
	var ok bool
	if c.buf, missed, more, ok = c.recorder.read(&c.at, c.buf, true); ok {
		return c.buf, missed, nil
	}
	return nil, missed, more
}

// Follow yields the records that are written after the call, until ctx ends. A
// slow reader misses records, and gets their number; it never delays a reconcile.
func (r *Recorder) Follow(ctx context.Context) iter.Seq[Record] {
	if r == nil {
		return func(func(Record) bool) { <-ctx.Done() }
	}
	r.mu.Lock()
	p := r.end()
	r.mu.Unlock()
	return func(yield func(Record) bool) {
		p := p
		var buf []byte
		for {
			var ok bool
			var missed int
			var more <-chan struct{}
			if buf, missed, more, ok = r.read(&p, buf, true); ok {
				record, _ := Decode(buf) // it is one of ours
				record.Missed = missed
				if ctx.Err() != nil || !yield(record) {
					return
				}
				continue
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}

// WriteJSON writes records as JSON lines until the sequence ends or a write
// fails.
func WriteJSON(w io.Writer, records iter.Seq[Record]) error {
	enc := json.NewEncoder(w)
	for r := range records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
