// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// fence stands between the client and the wire: it refuses the writes of a
// process that does not lead any more, each attempt anew, and knows which ones
// are under way. A write of a term ends with the term. One whose caller does not
// wait for it any more may be executed all the same, so that it is under way
// until its answer, too, or the end of the term.
type fence struct {
	next     http.RoundTripper
	entitled entitlement

	mu       sync.Mutex
	underway int
	idle     chan struct{} // closed when nothing is under way; nil while no goroutine waits
}

// entitlement reports whether writes may go out, and until when, if there is a
// term; a later answer may name a later time.
type entitlement func() (until time.Time, ok bool)

// fenced returns the client with a fence around its transport.
func fenced(c *http.Client, entitled entitlement) (*http.Client, *fence) {
	f := &fence{next: c.Transport, entitled: entitled}
	if f.next == nil {
		f.next = http.DefaultTransport
	}
	out := *c
	out.Transport = f
	return &out, f
}

// RoundTrip implements http.RoundTripper.
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return f.next.RoundTrip(r)
	}
	f.mu.Lock()
	until, ok := f.entitled()
	if ok {
		f.underway++
	}
	f.mu.Unlock()
	switch {
	case !ok:
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, ErrNotLeader
	case until.IsZero():
		defer f.returned()
		return f.next.RoundTrip(r)
	}
	return f.send(r, until)
}

// written is what came of a write.
type written struct {
	resp *http.Response
	err  error
}

// send makes a write of a term.
func (f *fence) send(r *http.Request, until time.Time) (*http.Response, error) {
	ctx := r.Context()
	sending, end := context.WithCancelCause(context.WithoutCancel(ctx))
	clock := f.endWithTerm(end, until)
	answers := make(chan written, 1)
	go func() {
		resp, err := f.next.RoundTrip(r.WithContext(sending)) //nolint:bodyclose // by its receiver
		if err != nil && errors.Is(context.Cause(sending), ErrNotLeader) {
			err = ErrNotLeader
		}
		clock.stop()
		f.returned()
		answers <- written{resp, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			end(nil)
			return nil, a.err
		}
		// What is left of the answer is read as long as the caller wants it.
		unbind := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
		a.resp.Body = &boundBody{a.resp.Body, func() { unbind(); end(nil) }}
		return a.resp, nil
	case <-ctx.Done():
		go func() {
			if a := <-answers; a.err == nil {
				_ = a.resp.Body.Close()
			}
			end(nil)
		}()
		return nil, ctx.Err()
	}
}

// boundBody is the body of an answer.
type boundBody struct {
	io.ReadCloser

	closed func()
}

// Close implements io.Closer.
func (b *boundBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}

// termClock ends a write with its term.
type termClock struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// endWithTerm calls end when the term that is until then is not renewed.
func (f *fence) endWithTerm(end context.CancelCauseFunc, until time.Time) *termClock {
	c := &termClock{}
	var due func()
	due = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.stopped {
			return
		}
		if later, ok := f.entitled(); ok && time.Until(later) > 0 {
			c.timer = time.AfterFunc(time.Until(later), due)
			return
		}
		end(ErrNotLeader)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(time.Until(until), due)
	return c
}

func (c *termClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}

func (f *fence) returned() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underway--
	if f.underway == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

// drain waits until no write is under way, or for the end of ctx. Further writes
// must be refused by then.
func (f *fence) drain(ctx context.Context) error {
	f.mu.Lock()
	if f.underway == 0 {
		f.mu.Unlock()
		return nil
	}
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	idle := f.idle
	f.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
