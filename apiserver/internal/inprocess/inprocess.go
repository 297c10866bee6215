// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inprocess connects an HTTP client to an HTTP handler without sockets.
//
// Bodies stream, contexts cancel, and a panic aborts the response, as over a network.
// It blocks on channels only, so it can be used inside a testing/synctest bubble.
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync"
)

// Transport is an http.RoundTripper whose requests go to a handler.
type Transport struct {
	// Handler answers the requests.
	Handler http.Handler
	// Context prepares the context of a request, for instance with its user.
	Context func(context.Context) context.Context
	// Streams reports whether the answer of a request is sent in pieces over time; such
	// a request runs on a goroutine of its own, others on the caller's.
	Streams func(*http.Request) bool
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	if t.Context != nil {
		ctx = t.Context(ctx)
	}
	if t.Streams(r) {
		return t.stream(ctx, r)
	}
	w := &whole{answer: answer{header: http.Header{}}}
	served, err := serve(t.Handler, w, incoming(ctx, r))
	if err != nil {
		return nil, err
	}
	w.WriteHeader(http.StatusOK)
	_ = served.Body.Close()
	if r.Method == http.MethodHead {
		w.data = nil
	}
	body := &reader{data: w.data}
	return w.response(r, body, int64(len(w.data))), nil
}

// incoming returns the request as a server would have read it.
func incoming(ctx context.Context, r *http.Request) *http.Request {
	in := r.WithContext(ctx)
	in.Header = maps.Clone(r.Header)
	if in.Header == nil {
		in.Header = http.Header{}
	}
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:0"
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/2.0", 2, 0
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// serve runs the handler; a panic with http.ErrAbortHandler is returned as an error.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (_ *http.Request, err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			err = io.ErrUnexpectedEOF
		default:
			panic(v)
		}
	}()
	h.ServeHTTP(w, r)
	return r, nil
}

// answer is the part of a response that both forms share.
type answer struct {
	header http.Header
	sent   http.Header
	code   int
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	if a.code != 0 || code < 200 {
		return
	}
	a.code = code
	a.sent = maps.Clone(a.header)
}

func (a *answer) response(r *http.Request, body io.ReadCloser, length int64) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.code, http.StatusText(a.code)), StatusCode: a.code,
		Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: a.sent, Body: body, ContentLength: length, Request: r,
	}
}

// whole collects a complete response.
type whole struct {
	answer
	data []byte
}

func (w *whole) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.data == nil {
		// Handlers that know the length set the header.
		if n, err := strconv.Atoi(w.sent.Get("Content-Length")); err == nil && n > len(p) {
			w.data = make([]byte, 0, n)
		}
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

func (w *whole) Flush() { w.WriteHeader(http.StatusOK) }

// reader is a response body in memory.
type reader struct{ data []byte }

func (b *reader) Read(p []byte) (int, error) {
	if len(b.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

func (b *reader) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.data)
	b.data = b.data[n:]
	return int64(n), err
}

func (b *reader) Close() error { return nil }

// stream runs the handler on another goroutine and returns with the headers.
func (t *Transport) stream(ctx context.Context, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &piped{
		answer:  answer{header: http.Header{}},
		ctx:     ctx,
		started: make(chan struct{}),
		ended:   make(chan struct{}),
		ready:   make(chan struct{}, 1),
		taken:   make(chan struct{}, 1),
	}
	in := incoming(ctx, r)
	go func() {
		defer cancel()
		_, err := serve(t.Handler, w, in)
		w.WriteHeader(http.StatusOK)
		_ = in.Body.Close()
		w.end(err)
	}()
	select {
	case <-w.started:
		return w.response(r, &pipeReader{w: w, client: r.Context(), cancel: cancel}, -1), nil
	case <-r.Context().Done(): // not ctx, which also ends with the handler
		<-w.ended // the handler sees the same cancellation and returns
		return nil, r.Context().Err()
	}
}

// maxPending bounds what a stream buffers before its handler blocks, in bytes.
const maxPending = 256 << 10

// piped is a response whose body is read while it is written.
type piped struct {
	answer
	ctx     context.Context
	started chan struct{} // closed once code and headers are there
	ended   chan struct{} // closed after the handler has returned
	ready   chan struct{} // signals that there may be something to read
	taken   chan struct{} // signals that something was read

	mu      sync.Mutex
	pending []byte
	spare   []byte
	err     error // of the handler, once ended
}

func (w *piped) WriteHeader(code int) {
	first := w.code == 0 && code >= 200
	w.answer.WriteHeader(code)
	if first {
		close(w.started)
	}
}

func (w *piped) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	for {
		w.mu.Lock()
		if len(w.pending) < maxPending {
			w.pending = append(w.pending, p...)
			w.mu.Unlock()
			return len(p), nil
		}
		w.mu.Unlock()
		w.Flush()
		select {
		case <-w.taken:
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
}

// Flush wakes the reader.
func (w *piped) Flush() {
	w.WriteHeader(http.StatusOK)
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *piped) end(err error) {
	w.mu.Lock()
	if w.err = err; err == nil {
		w.err = io.EOF
	}
	w.mu.Unlock()
	close(w.ended)
}

// pipeReader is the client's end of a stream.
type pipeReader struct {
	w      *piped
	client context.Context
	cancel context.CancelFunc
	rest   []byte
	whole  []byte // the buffer that rest is a suffix of
}

func (b *pipeReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(b.rest) == 0 {
		ended, err := b.fill()
		if len(b.rest) > 0 {
			break
		}
		if ended {
			return 0, err
		}
		select {
		case <-b.w.ready:
		case <-b.w.ended:
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// fill takes the pending bytes and gives its own buffer back for reuse.
func (b *pipeReader) fill() (ended bool, err error) {
	w := b.w
	w.mu.Lock()
	if cap(b.whole) > 0 {
		w.spare, b.whole = b.whole[:0], nil
	}
	if len(w.pending) > 0 {
		b.whole = w.pending
		b.rest = b.whole
		w.pending, w.spare = w.spare, nil
	}
	ended, err = w.err != nil, w.err
	w.mu.Unlock()
	if ended && errors.Is(err, io.EOF) && b.client.Err() != nil {
		err = b.client.Err()
	}
	select {
	case w.taken <- struct{}{}:
	default:
	}
	return ended, err
}

// Close ends the request and waits until the handler has returned.
func (b *pipeReader) Close() error {
	b.cancel()
	<-b.w.ended
	return nil
}
