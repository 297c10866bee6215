// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http"
	"sync"
)

// fence stands between the client and the wire: it refuses the writes of a
// process that does not lead any more, each attempt anew, and knows which ones
// are under way.
type fence struct {
	next     http.RoundTripper
	entitled func() bool

	mu       sync.Mutex
	underway int
	idle     chan struct{} // closed when nothing is under way; nil while no goroutine waits
}

// fenced returns the client with a fence around its transport.
func fenced(c *http.Client, entitled func() bool) (*http.Client, *fence) {
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
	ok := f.entitled()
	if ok {
		f.underway++
	}
	f.mu.Unlock()
	if !ok {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, ErrNotLeader
	}
	defer f.returned()
	return f.next.RoundTrip(r)
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
