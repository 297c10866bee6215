// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wire is what lies between a client and the API server: it may keep watches from
// delivering, cut them and put bytes into them, lose the answers of writes, and answer in
// place of the server. It starts no goroutines.
type wire struct {
	next http.RoundTripper

	mu       sync.Mutex
	fail     func(*http.Request) *http.Response
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
	lossy, fail := w.lossy && r.Method != http.MethodGet, w.fail
	w.mu.Unlock()
	if fail != nil {
		if resp := fail(r); resp != nil {
			if resp.StatusCode == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			resp.Request = r
			return resp, nil
		}
	}
	resp, err := w.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case lossy:
		_ = resp.Body.Close()
		return nil, io.ErrUnexpectedEOF
	case r.URL.Query().Has("watch") && resp.StatusCode == http.StatusOK:
		body := &heldBody{ctx: r.Context(), wire: w, ReadCloser: resp.Body, ended: make(chan struct{})}
		resp.Body = body
		w.mu.Lock()
		w.watches[body] = struct{}{}
		w.mu.Unlock()
	}
	return resp, nil
}

// SetFail lets fn answer requests: nil means that the server does. See [refuse] and
// [broken].
func (w *wire) SetFail(fn func(*http.Request) *http.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = fn
}

// LoseAnswers makes the answers of writes get lost.
func (w *wire) LoseAnswers(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lossy = on
}

// Hold keeps watches from delivering; false lets them go on.
func (w *wire) Hold(on bool) {
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

// Cut ends every open watch with err: io.EOF is an orderly end. What has not been
// delivered is lost.
func (w *wire) Cut(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for body := range w.watches {
		body.end(err)
	}
	clear(w.watches)
}

// Send puts raw bytes into every open watch, whose end they then are.
func (w *wire) Send(raw string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for body := range w.watches {
		body.sent = []byte(raw)
		body.end(io.EOF)
	}
	clear(w.watches)
}

// Watches is the number of open watches.
func (w *wire) Watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watches)
}

// Requests is what has been requested so far, as "METHOD path?query".
func (w *wire) Requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// heldBody is the body of a watch.
type heldBody struct {
	io.ReadCloser
	ctx   context.Context // of the request
	wire  *wire
	once  sync.Once
	ended chan struct{}
	sent  []byte // before err
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
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	select {
	case <-b.ended:
	default:
		return n, err
	}
	if len(b.sent) > 0 {
		n := copy(p, b.sent)
		b.sent = b.sent[n:]
		return n, nil
	}
	return 0, b.err
}

// Close implements io.Closer.
func (b *heldBody) Close() error {
	b.end(io.ErrClosedPipe)
	b.wire.mu.Lock()
	defer b.wire.mu.Unlock()
	delete(b.wire.watches, b)
	return nil
}

// broken answers with a connection that breaks.
func broken() *http.Response { return &http.Response{} }

// refuse answers with a Status.
func refuse(code int, reason metav1.StatusReason, message string) *http.Response {
	body, _ := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	return answerWith(code, string(body))
}

func answerWith(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(body)))}
}

// expired refuses watches from before a revision, as a server that has compacted does.
func expired(revision uint64) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response {
		query := r.URL.Query()
		if from, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64); query.Has("watch") && from > 0 && from < revision {
			return refuse(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
		}
		return nil
	}
}

// onCollections answers lists and watches of ConfigMaps only.
func onCollections(answer func() *http.Response) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps") {
			return answer()
		}
		return nil
	}
}
