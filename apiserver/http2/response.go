// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// sendAt is how much of an answer gathers before it is sent unasked.
	sendAt = 4 * frameSize
	// sniffed is how much of a body tells what it is.
	sniffed = 512
)

// response is the answer of a handler. It is for the goroutine of the handler.
type response struct {
	st     *stream
	header http.Header
	// code is 0 until the headers are written; then they are in fields, and sent
	// tells that they are on their way.
	code   int
	fields []hpack.HeaderField
	sent   bool
	// length is what the headers declare, -1 for nothing.
	length, wrote int64
	// trailers are the names that were announced.
	trailers []string
	body     *payload // nil when nothing waits
	// leave tells that the client shall make new requests elsewhere.
	leave, finished bool
}

func newResponse(st *stream) *response {
	return &response{st: st, header: make(http.Header, 8), length: -1}
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(code int) {
	if code < 100 || code > 999 {
		panic("http2: invalid status " + strconv.Itoa(code))
	}
	if w.code != 0 {
		w.st.c.host.logf("http2: superfluous WriteHeader call for %s", w.st.req.URL.Path)
		return
	}
	if code < 200 && code != http.StatusSwitchingProtocols {
		w.inform(code)
		return
	}
	w.code = code
	w.fields = status(code)
	if text := w.header.Get("Content-Length"); text != "" {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			delete(w.header, "Content-Length") // it would be believed
		} else {
			w.length = int64(n)
		}
	}
	w.leave = strings.EqualFold(w.header.Get("Connection"), "close")
	w.take(true)
}

// inform sends an interim answer.
func (w *response) inform(code int) {
	w.fields = status(code)
	w.take(false)
	c := w.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.err == nil {
		c.out.headers(w.st.id, w.fields, false)
		_ = c.flush(nil) // the answer itself will fail
	}
}

// take makes fields of the header, as it is now.
func (w *response) take(final bool) {
	if final {
		if _, there := w.header["Date"]; !there {
			w.fields = append(w.fields, hpack.HeaderField{Name: "date", Value: w.st.c.host.date.text(time.Now())})
		}
		for _, list := range w.header["Trailer"] {
			for name := range strings.SplitSeq(list, ",") {
				if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); httpguts.ValidTrailerHeader(name) {
					w.trailers = append(w.trailers, name)
				}
			}
		}
	}
	for name, values := range w.header {
		if !w.travels(name) {
			continue
		}
		w.add(name, values)
	}
}

// travels tells whether a header is sent with the headers.
func (w *response) travels(name string) bool {
	for _, other := range connectionHeaders() {
		if name == other {
			return false
		}
	}
	for _, trailer := range w.trailers {
		if name == trailer {
			return false
		}
	}
	return !strings.HasPrefix(name, http.TrailerPrefix)
}

func (w *response) add(name string, values []string) {
	if !httpguts.ValidHeaderFieldName(name) {
		return
	}
	lower := w.st.c.host.names.lowerOf(name)
	for _, value := range values {
		if httpguts.ValidHeaderFieldValue(value) {
			// What no other answer has would only push out of the table what they
			// all have.
			unique := lower == "content-length" || lower == "audit-id"
			w.fields = append(w.fields, hpack.HeaderField{Name: lower, Value: value, Sensitive: unique})
		}
	}
}

func status(code int) []hpack.HeaderField {
	fields := make([]hpack.HeaderField, 1, 12)
	fields[0] = hpack.HeaderField{Name: ":status", Value: strconv.Itoa(code)}
	return fields
}

// mayHaveBody tells whether an answer has a body.
func (w *response) mayHaveBody() bool {
	return w.code >= 200 && w.code != http.StatusNoContent && w.code != http.StatusNotModified
}

// Write implements io.Writer.
func (w *response) Write(p []byte) (int, error) {
	if w.finished {
		return 0, errDone
	}
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.mayHaveBody() {
		return 0, http.ErrBodyNotAllowed
	}
	if w.length >= 0 && w.wrote+int64(len(p)) > w.length {
		return 0, http.ErrContentLength
	}
	if w.wrote == 0 && len(p) > 0 && !w.sent {
		w.sniff(p)
	}
	w.wrote += int64(len(p))
	if w.st.req.Method == http.MethodHead {
		return len(p), nil
	}
	n := len(p)
	for len(p) > 0 {
		if w.body == nil {
			w.body = w.st.c.host.buffers.Get().(*payload)
		}
		piece := p[:min(len(p), sendAt-len(w.body.bytes))]
		w.body.write(piece)
		p = p[len(piece):]
		if len(w.body.bytes) >= sendAt {
			if err := w.send(false); err != nil {
				return n - len(p), err
			}
		}
	}
	return n, nil
}

// WriteString implements io.StringWriter.
func (w *response) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is what http.ResponseController calls.
func (w *response) FlushError() error {
	if w.finished {
		return errDone
	}
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.send(false)
}

// finish sends what is left and ends the stream.
func (w *response) finish() {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.length >= 0 && w.wrote < w.length && w.st.req.Method != http.MethodHead && w.mayHaveBody() {
		w.st.abort(http2.ErrCodeInternal) // the client would wait, or take it for all
		return
	}
	if !w.sent && w.length < 0 && w.mayHaveBody() && (w.wrote > 0 || w.st.req.Method != http.MethodHead) {
		w.fields = append(w.fields, hpack.HeaderField{Name: "content-length", Value: strconv.FormatInt(w.wrote, 10), Sensitive: true})
	}
	_ = w.send(true) // the handler has done its part
	w.finished = true
}

// release gives back the memory of the answer.
func (w *response) release() {
	w.finished = true
	if w.body != nil {
		w.body.reset()
		w.st.c.host.buffers.Put(w.body)
		w.body = nil
	}
}

// send sends what has gathered, and the end of the stream if there is no more. It
// waits for the client to take it.
func (w *response) send(ended bool) error {
	st := w.st
	c := st.c
	last := w.lastFields(ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.err != nil {
		return st.err
	}
	empty := w.body == nil
	if !w.sent {
		w.sent, st.body.expects = true, false
		c.out.headers(st.id, w.fields, ended && empty && last == nil)
		w.fields = nil
	} else if ended && empty && last == nil {
		c.out.end(st.id)
	}
	if !empty {
		if err := w.pass(ended && last == nil); err != nil {
			return err
		}
	}
	if last != nil {
		c.out.headers(st.id, last, true)
	}
	if ended {
		st.answered()
	}
	return c.flush(nil)
}

// answered ends a stream whose answer is complete; c.mu is held.
func (st *stream) answered() {
	if st.err != nil {
		return
	}
	if !st.body.ended {
		st.c.out.reset(st.id, http2.ErrCodeNo) // nobody wants the rest of the request
	}
	st.c.drop(st, errDone)
}

// pass sends the body as the client takes it; c.mu is held.
func (w *response) pass(ended bool) error {
	st, p := w.st, w.body
	c := st.c
	for rest := p.rest(); rest > 0; rest = p.rest() {
		n := int(min(int64(rest), st.room, c.room))
		if n <= 0 {
			// What it has been sent must be on its way before the client can take more.
			if err := c.flush(nil); err != nil {
				return err
			}
			if min(st.room, c.room) <= 0 && st.err == nil {
				st.changed.Wait()
			}
		} else {
			st.room -= int64(n)
			c.room -= int64(n)
			last := n == rest && ended
			frames := p.cut(st.id, n, last)
			c.nuisance.forget()
			if last && st.body.ended {
				c.drop(st, errDone) // so that whoever sees the end finds it ended
				return c.flush(frames)
			}
			if err := c.flush(frames); err != nil {
				return err
			}
		}
		if st.err != nil {
			return st.err
		}
	}
	w.release1()
	return nil
}

// release1 gives back the memory of what has been sent.
func (w *response) release1() {
	w.body.reset()
	w.st.c.host.buffers.Put(w.body)
	w.body = nil
}

// lastFields are the trailers of an answer, if this is its end.
func (w *response) lastFields(ended bool) []hpack.HeaderField {
	if !ended {
		return nil
	}
	before := w.fields
	w.fields = nil
	for _, name := range w.trailers {
		w.add(name, w.header[name])
	}
	for name, values := range w.header {
		if bare, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			w.add(bare, values)
		}
	}
	last := w.fields
	w.fields = before
	return last
}

// sniff says what a body is that begins like this, if the handler did not.
func (w *response) sniff(begin []byte) {
	for _, f := range w.fields {
		if f.Name == "content-type" || f.Name == "content-encoding" && f.Value != "" {
			return
		}
	}
	w.fields = append(w.fields, hpack.HeaderField{Name: "content-type", Value: http.DetectContentType(begin[:min(len(begin), sniffed)])})
}
