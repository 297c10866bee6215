// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"context"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// takeHeaders begins a stream, or ends it with trailers.
func (c *connection) takeHeaders(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	if st := c.streams[id]; st != nil {
		return c.takeTrailers(st, f)
	}
	h := c.headOf(f)
	if h != nil {
		c.repeats.remember(h)
	}
	if f.HasPriority() && f.Priority.StreamDep == id {
		h = nil
	}
	return c.takeRequest(id, f.StreamEnded(), h)
}

// takeRequest begins a stream; head is nil if what was sent is not a request.
func (c *connection) takeRequest(id uint32, ended bool, h *head) error {
	wrong := http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	switch {
	case id%2 == 0:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case id <= c.last:
		wrong.Code = http2.ErrCodeStreamClosed
		return wrong
	case c.away:
		return c.nuisance.note() // the client knows that nobody answers
	}
	c.last = id
	if len(c.streams) >= c.host.limits.streams {
		wrong.Code = http2.ErrCodeRefusedStream
		return wrong
	}
	if h == nil {
		return wrong
	}
	st := &stream{c: c, id: id, room: c.streamRoom}
	st.changed.L = &c.mu
	st.body.declared, st.body.allowed = h.declared, c.host.limits.streamWindow
	st.body.ended = ended
	if ended && h.declared > 0 {
		return wrong
	}
	st.request(h)
	return c.open(st)
}

func (c *connection) takeTrailers(st *stream, f *http2.MetaHeadersFrame) error {
	b := &st.body
	switch {
	case b.ended:
		return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeStreamClosed}
	case !f.StreamEnded() || len(f.PseudoFields()) > 0 || b.declared >= 0 && b.got < b.declared:
		return st.wrongEnd()
	}
	for _, field := range f.RegularFields() {
		name := c.host.names.canonicalOf(field.Name)
		if !httpguts.ValidTrailerHeader(name) {
			return st.wrongEnd()
		}
		// net/http shows only those that were announced.
		if _, announced := st.req.Trailer[name]; announced {
			b.trailer = append(b.trailer, hpack.HeaderField{Name: name, Value: field.Value})
		}
	}
	st.endOfBody()
	st.changed.Broadcast()
	return nil
}

// head is what the headers of a request say.
type head struct {
	method, uri, host string
	url               url.URL
	// header is that of the request, or nil if lines are to be made one, which have
	// so many values.
	header http.Header
	lines  []line
	values int
	// declared is the length of the body, -1 for none.
	declared int64
	// prepares tells that there are headers that prepare for the body.
	prepares bool
	// refusal answers in place of the handler a request that cannot be served.
	refusal http.Handler
}

// line is a header with its values.
type line struct {
	name   string
	values []string
}

// headOf returns nil for headers that are not those of a request.
func (c *connection) headOf(f *http2.MetaHeadersFrame) *head {
	path, authority := f.PseudoValue("path"), f.PseudoValue("authority")
	h := &head{method: f.PseudoValue("method"), uri: path, host: authority}
	scheme, connect := f.PseudoValue("scheme"), h.method == http.MethodConnect
	switch {
	case connect && (path != "" || scheme != "" || authority == ""),
		!connect && (h.method == "" || path == "" || scheme != "https" && scheme != "http"),
		f.PseudoValue("protocol") != "":
		if !f.Truncated { // else they may have been cut off
			return nil
		}
	}
	h.header = c.header(f.RegularFields())
	if !h.target(connect, f.Truncated) || !h.length() {
		return nil
	}
	if h.host == "" {
		h.host = h.header.Get("Host")
	}
	delete(h.header, "Host")
	h.prepares = h.header["Expect"] != nil || h.header["Trailer"] != nil
	switch {
	case f.Truncated:
		h.refusal = http.HandlerFunc(tooLarge)
	case forbidden(h.header):
		h.refusal = http.HandlerFunc(malformed)
	}
	return h
}

// target parses what the request is for.
func (h *head) target(connect, truncated bool) bool {
	if connect {
		h.url, h.uri = url.URL{Host: h.host}, h.host
		return true
	}
	u, err := url.ParseRequestURI(h.uri)
	if err == nil {
		h.url = *u
	}
	return err == nil || truncated
}

// length reads how long the body is; false says that the headers do not agree.
func (h *head) length() bool {
	h.declared = -1
	lengths := h.header["Content-Length"]
	if lengths == nil {
		return true
	}
	n, err := strconv.ParseUint(lengths[0], 10, 63)
	if err != nil {
		return false
	}
	for _, other := range lengths[1:] {
		if other != lengths[0] {
			return false
		}
	}
	h.declared = int64(n)
	return true
}

// request makes the request of a stream.
func (st *stream) request(h *head) {
	c := st.c
	st.refusal, st.url = h.refusal, h.url
	st.ctx, st.cancel = context.WithCancel(c.values)
	st.req = (&http.Request{
		Method: h.method, Proto: "HTTP/2.0", ProtoMajor: 2, TLS: c.tls, RemoteAddr: c.remote,
		URL: &st.url, RequestURI: h.uri, Host: h.host, Header: h.fields(), Body: http.NoBody,
	}).WithContext(st.ctx)
	if !st.body.ended {
		st.expect(h.prepares)
	}
}

// header makes a header of fields; all values share one array.
func (c *connection) header(fields []hpack.HeaderField) http.Header {
	h := make(http.Header, len(fields))
	values := make([]string, len(fields))
	for i, f := range fields {
		name := c.host.names.canonicalOf(f.Name)
		switch present := h[name]; {
		case present == nil:
			values[i] = f.Value
			h[name] = values[i : i+1 : i+1]
		case name == "Cookie":
			present[0] += "; " + f.Value // they may come in pieces
		default:
			h[name] = append(present, f.Value)
		}
	}
	return h
}

// expect prepares for the body of a request; told says that headers tell more of it
// than its length.
func (st *stream) expect(told bool) {
	req, b := st.req, &st.body
	req.Body, req.ContentLength = reader{st}, b.declared
	if n := b.declared; n > 0 {
		b.data = make([]byte, 0, min(n, frameSize))
	}
	if !told {
		return
	}
	if httpguts.HeaderValuesContainsToken(req.Header["Expect"], "100-continue") {
		b.expects = true
		delete(req.Header, "Expect")
	}
	for _, list := range req.Header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))
			if !httpguts.ValidTrailerHeader(name) {
				continue
			}
			if req.Trailer == nil {
				req.Trailer = http.Header{}
			}
			req.Trailer[name] = nil
		}
	}
	delete(req.Header, "Trailer")
}

// forbidden tells whether there are headers that mean something for a connection
// of HTTP/1.1 alone.
func forbidden(h http.Header) bool {
	for _, name := range connectionHeaders() {
		if _, there := h[name]; there {
			return true
		}
	}
	te := h["Te"]
	return len(te) > 0 && (len(te) > 1 || te[0] != "trailers" && te[0] != "")
}

func connectionHeaders() [5]string {
	return [5]string{"Connection", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "Keep-Alive"}
}

func tooLarge(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "The headers of the request are too large.", http.StatusRequestHeaderFieldsTooLarge)
}

func malformed(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "A header of the request has no place in HTTP/2.", http.StatusBadRequest)
}
