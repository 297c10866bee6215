// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"net/http"
	"sync"
	"time"
)

// WriteTimeout bounds one write of a long-running answer while the client does not
// read.
const WriteTimeout = 30 * time.Second

// Extra time after the time limit of a request: for its body until reads fail, and for
// its answer, which may report the timeout, until writes fail.
const (
	ReadGrace  = 500 * time.Millisecond
	WriteGrace = time.Second
)

// Deadlines ends the reads and writes of one HTTP exchange, so that a client that sends
// nothing or reads nothing cannot keep the handler. Its methods must be called by the
// handler's goroutine. Without deadlines in the server below, as in process, they do
// nothing; a nil *Deadlines does nothing either.
type Deadlines struct {
	control *http.ResponseController
	// none is set if the server below has no deadlines, guarded once timer guards
	// writes.
	none, guarded bool
	timer         *time.Timer

	mu   sync.Mutex // serialises cut with Done
	done bool
}

// NewDeadlines returns the deadlines of an exchange; none is set.
func NewDeadlines(w http.ResponseWriter) *Deadlines {
	return &Deadlines{control: http.NewResponseController(w)}
}

// Bound ends reading the body of the request, and writing its answer, soon after limit.
// Reads then fail with os.ErrDeadlineExceeded; writes fail, and the HTTP/2 stream is
// reset or the HTTP/1.1 connection closed.
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
		return // the limit counts from the arrival of the request
	}
	d.set(d.control.SetWriteDeadline, now.Add(limit+WriteGrace))
}

func (d *Deadlines) set(deadline func(time.Time) error, at time.Time) {
	if !d.none && deadline(at) != nil {
		d.none = true
	}
}

// Lift removes both deadlines, for a long-running request. From then on each write may
// take [WriteTimeout].
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
		d.timer = time.AfterFunc(WriteTimeout, d.cut)
	default:
		d.timer.Reset(WriteTimeout)
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
	if !d.done { // afterwards the connection serves another exchange
		_ = d.control.SetWriteDeadline(time.Unix(1, 0)) // a deadline could be set before, so this does not fail
	}
}

// Done must be called when the handler returns. The server writes the end of a
// long-running answer after that, with the time of one write.
func (d *Deadlines) Done() {
	if d == nil {
		return
	}
	d.Written()
	d.mu.Lock()
	d.done = true
	d.mu.Unlock()
	if d.guarded {
		d.set(d.control.SetWriteDeadline, time.Now().Add(WriteTimeout))
	}
}
