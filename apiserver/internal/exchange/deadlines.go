// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"net/http"
	"sync"
	"time"
)

// Stall is how long one write of an answer that lasts may wait for a client that does
// not read.
const Stall = 30 * time.Second

// What a request has beyond its time limit: its body until reading fails, and its
// answer, which may say so, until writing fails.
const (
	ReadGrace  = 500 * time.Millisecond
	WriteGrace = time.Second
)

// Deadlines ends the reading and writing of one HTTP exchange, so that a client
// that sends nothing, or reads nothing, cannot keep the request's handler. Its methods
// are for the goroutine of the handler. Where the server below has no deadlines, as in
// process, and for nil they do nothing.
type Deadlines struct {
	control *http.ResponseController
	// none is set when the server below has no deadlines, guarded once writes are
	// guarded by timer.
	none, guarded bool
	timer         *time.Timer

	mu   sync.Mutex // serialises cut with Done
	done bool
}

// NewDeadlines returns the deadlines of an exchange, none of which is set.
func NewDeadlines(w http.ResponseWriter) *Deadlines {
	return &Deadlines{control: http.NewResponseController(w)}
}

// Bound ends reading the body of the request, and writing its answer, soon after limit.
// Then the body fails with os.ErrDeadlineExceeded; writes fail, and the stream of
// HTTP/2 is reset, the connection of HTTP/1.1 closed.
func (d *Deadlines) Bound(r *http.Request, limit time.Duration) {
	if d == nil {
		return
	}
	now := time.Now()
	if r.ContentLength != 0 {
		d.set(d.control.SetReadDeadline, now.Add(limit+ReadGrace))
	}
	s, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if ok && s.WriteTimeout > 0 && s.WriteTimeout <= limit+WriteGrace {
		return // it counts from when the request came
	}
	d.set(d.control.SetWriteDeadline, now.Add(limit+WriteGrace))
}

func (d *Deadlines) set(deadline func(time.Time) error, at time.Time) {
	if !d.none && deadline(at) != nil {
		d.none = true
	}
}

// Lift takes both deadlines away, for a request that may last. From then on any one
// write may take [Stall].
func (d *Deadlines) Lift() {
	if d == nil {
		return
	}
	d.set(d.control.SetReadDeadline, time.Time{})
	d.set(d.control.SetWriteDeadline, time.Time{})
	d.guarded = !d.none
}

// Writing is called before a write, and Written after it.
func (d *Deadlines) Writing() {
	switch {
	case d == nil || !d.guarded:
	case d.timer == nil:
		d.timer = time.AfterFunc(Stall, d.cut)
	default:
		d.timer.Reset(Stall)
	}
}

// Written ends what Writing began.
func (d *Deadlines) Written() {
	if d != nil && d.timer != nil {
		d.timer.Stop()
	}
}

// cut ends a write that has taken too long.
func (d *Deadlines) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.done { // afterwards the exchange is another's
		_ = d.control.SetWriteDeadline(time.Unix(1, 0)) // it could be set before
	}
}

// Done is called when the handler returns. The end of an answer that lasted, which is
// left to the server to write, has the time of one write.
func (d *Deadlines) Done() {
	if d == nil {
		return
	}
	d.Written()
	d.mu.Lock()
	d.done = true
	d.mu.Unlock()
	if d.guarded {
		d.set(d.control.SetWriteDeadline, time.Now().Add(Stall))
	}
}
