// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// stream is one request and its answer.
type stream struct {
	c  *connection
	id uint32

	ctx    context.Context
	cancel context.CancelFunc
	req    *http.Request
	url    url.URL // of the request
	// refusal answers in place of the handler a request that cannot be served.
	refusal http.Handler

	// The rest is guarded by the connection's mu.

	// changed is signalled when there is more body, more room or an end.
	changed sync.Cond
	// room is how much the client still takes of this stream.
	room int64
	body body
	// err tells that the stream is over, and why.
	err error
}

// maxParked is how many goroutines of handlers a connection keeps for its next
// requests: a new one would first have to make its stack grow to what handlers
// need, which costs more than reading the request.
const maxParked = 4

// open begins a stream; c.mu is held.
func (c *connection) open(st *stream) error {
	c.streams[st.id] = st
	if c.ctx.Err() != nil {
		st.cancel()
	}
	c.nuisance.forget()
	if c.running < c.host.limits.streams {
		c.running++
		if c.parked > 0 {
			c.parked--
			c.next <- st // has room for as many as are parked
			return nil
		}
		c.handlers.Go(func() { c.work(st) })
		return nil
	}
	// All streams that there may be were reset, and their handlers have not
	// returned. A client that goes on like this wants to do harm.
	if c.waiting = append(c.waiting, st); len(c.waiting) > 4*c.host.limits.streams {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return nil
}

// work runs the handler of a stream, and then those of others.
func (c *connection) work(st *stream) {
	for st != nil {
		st.serve()
		if st = c.another(); st == nil && c.park() {
			st = <-c.next
		}
	}
}

// another returns a stream that waits for a handler.
func (c *connection) another() *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) > 0 {
		st := c.waiting[0]
		c.waiting = c.waiting[1:]
		if st.err == nil {
			return st
		}
	}
	c.running--
	return nil
}

// park tells whether to wait for the next request. The end of the connection ends
// the wait.
func (c *connection) park() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.parked == maxParked {
		return false
	}
	c.parked++
	return true
}

// serve runs the handler and ends the stream.
func (st *stream) serve() {
	defer st.cancel()
	w := newResponse(st)
	panicked := true
	defer func() {
		if panicked {
			if v := recover(); v != nil && !onPurpose(v) {
				st.c.host.logf("http2: panic serving %s: %v\n%s", st.c.remote, v, debug.Stack())
			}
			st.abort(http2.ErrCodeInternal)
		}
		w.release()
	}()
	if st.refusal != nil {
		st.refusal.ServeHTTP(w, st.req)
	} else {
		st.c.handler.ServeHTTP(w, st.req)
	}
	w.finish()
	panicked = false
	if w.leave {
		st.c.goAway()
	}
}

// onPurpose tells whether a handler panicked to abort its answer.
func onPurpose(v any) bool {
	err, ok := v.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

// abort ends a stream in the middle.
func (st *stream) abort(code http2.ErrCode) {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.err == nil {
		c.out.reset(st.id, code)
		c.drop(st, errAborted)
		_ = c.flush(nil) // it has failed anyway
	}
}

var (
	errAborted = errors.New("http2: the answer was aborted")
	errDone    = errors.New("http2: the stream has ended")
)

// drop forgets a stream; c.mu is held.
func (c *connection) drop(st *stream, err error) {
	if st.err != nil {
		return
	}
	st.err = err
	delete(c.streams, st.id)
	c.giveBack(st.body.discard())
	st.cancel()
	st.changed.Broadcast()
	if len(c.streams) == 0 {
		c.idleSince = time.Now()
		c.finish()
	}
}
