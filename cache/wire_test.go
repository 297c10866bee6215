// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"io"
	"net/http"
	"slices"
	"sync"
)

// wire is what lies between a client and the API server: it may keep watches from
// delivering, cut them, and lose the answers of writes. It starts no goroutines.
type wire struct {
	next http.RoundTripper

	mu       sync.Mutex
	lossy    bool
	held     chan struct{} // closed when watches may deliver again; nil if they may
	watches  map[*heldBody]struct{}
	requests []string
}

func newWire(next http.RoundTripper) *wire {
	return &wire{next: next, watches: map[*heldBody]struct{}{}}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.requests = append(w.requests, r.Method+" "+r.URL.RequestURI())
	lossy := w.lossy && r.Method != http.MethodGet
	w.mu.Unlock()
	resp, err := w.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case lossy:
		_ = resp.Body.Close()
		return nil, io.ErrUnexpectedEOF
	case r.URL.Query().Has("watch"):
		body := &heldBody{wire: w, ReadCloser: resp.Body, ended: make(chan struct{})}
		resp.Body = body
		w.mu.Lock()
		w.watches[body] = struct{}{}
		w.mu.Unlock()
	}
	return resp, nil
}

// lose makes the answers of writes get lost.
func (w *wire) lose(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lossy = on
}

// hold keeps watches from delivering; false lets them go on.
func (w *wire) hold(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case on && w.held == nil:
		w.held = make(chan struct{})
	case !on && w.held != nil:
		close(w.held)
		w.held = nil
	}
}

// cut ends every open watch with err; what it has not delivered is lost.
func (w *wire) cut(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for body := range w.watches {
		body.end(err)
	}
	clear(w.watches)
}

// seen is what has been requested so far, as "METHOD path?query".
func (w *wire) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// heldBody is the body of a watch.
type heldBody struct {
	io.ReadCloser
	wire  *wire
	once  sync.Once
	ended chan struct{}
	err   error
}

func (b *heldBody) end(err error) {
	b.once.Do(func() {
		b.err = err
		close(b.ended)
		_ = b.ReadCloser.Close()
	})
}

// Read implements io.Reader.
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.wire.mu.Lock()
	held := b.wire.held
	b.wire.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-b.ended:
		}
	}
	select {
	case <-b.ended:
		return 0, b.err
	default:
		return n, err
	}
}

// Close implements io.Closer.
func (b *heldBody) Close() error {
	b.end(io.ErrClosedPipe)
	b.wire.mu.Lock()
	defer b.wire.mu.Unlock()
	delete(b.wire.watches, b)
	return nil
}
